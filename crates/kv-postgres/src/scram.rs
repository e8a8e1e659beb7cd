//! The client's side of SCRAM-SHA-256 without channel binding (RFC 5802, RFC 7677).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The most rounds that we compute for a server: a hostile one must not keep us busy for ever.
const ROUNDS_MAX: u32 = 10_000_000;

/// One login under way.
pub(crate) struct Scram {
    password: String,
    nonce: String,
    signature: Option<[u8; 32]>,
}

impl Scram {
    /// A login with a nonce that was never used before.
    pub(crate) fn new(password: &str, nonce: String) -> Scram {
        Scram { password: password.to_string(), nonce, signature: None }
    }

    /// The first message. PostgreSQL takes the user's name from the start-up packet.
    pub(crate) fn first(&self) -> String {
        format!("n,,{}", self.first_bare())
    }

    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Answers the server's challenge.
    pub(crate) fn answer(&mut self, challenge: &str) -> Result<String, String> {
        let field = |name: &str| {
            challenge.split(',').find_map(|it| it.strip_prefix(name)).ok_or("a field is missing")
        };
        let nonce = field("r=")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("the server's nonce does not extend ours".into());
        }
        let salt = decode64(field("s=")?).ok_or("the salt is not base64")?;
        let rounds: u32 = field("i=")?.parse().map_err(|_| "the rounds are not a number")?;
        if rounds == 0 || ROUNDS_MAX < rounds {
            return Err(format!("{rounds} rounds are asked for, the limit is {ROUNDS_MAX}"));
        }
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(self.password.as_bytes(), &salt, rounds, &mut salted);
        let client_key = mac(&salted, b"Client Key");
        let stored_key: [u8; 32] = Sha256::digest(client_key).into();
        let last_bare = format!("c=biws,r={nonce}");
        let text = format!("{},{challenge},{last_bare}", self.first_bare());
        let signature = mac(&stored_key, text.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        self.signature = Some(mac(&mac(&salted, b"Server Key"), text.as_bytes()));
        Ok(format!("{last_bare},p={}", encode64(&proof)))
    }

    /// Checks that the server knows the password too.
    pub(crate) fn verify(&self, last: &str) -> Result<(), String> {
        let sent = last.strip_prefix("v=").and_then(decode64);
        match (sent, self.signature) {
            (Some(sent), Some(ours)) if sent == ours => Ok(()),
            _ => Err("the server does not know the password".into()),
        }
    }
}

fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(bits);
        for index in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * index)) as usize & 63];
            text.push(if chunk.len() < index { '=' } else { char::from(letter) });
        }
    }
    text
}

fn decode64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let six = ALPHABET.iter().position(|it| *it == letter)?;
        bits = bits << 6 | six as u32;
        count += 6;
        if 8 <= count {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange that RFC 7677 prints, with its user name in the first message.
    #[test]
    fn the_exchange_of_the_rfc() {
        let mut scram = Scram::new("pencil", "rOprNGfwEbeRWgbNEkqO".into());
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                         s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let answer = scram.answer(challenge).unwrap();
        assert!(answer.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"));
        assert!(scram.verify("v=AAAA").is_err());
        assert!(scram.answer("r=other,s=W22Z,i=1").is_err());
        assert!(scram.answer("r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=99999999999").is_err());
    }

    #[test]
    fn base64_both_ways() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(encode64(bytes.as_bytes()), text);
            assert_eq!(decode64(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(decode64("a b"), None);
    }
}
