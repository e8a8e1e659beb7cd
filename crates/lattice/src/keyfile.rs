//! The bytes of a key file: an owner's secret, in the clear or under a passphrase.
//!
//! ```text
//! "kumiko-key" 01, form (1), public key (32), then
//! form 0    seed (32)
//! form 1    salt (16), rounds (4, BE), seed xor stream (32), mark (32)
//! ```
//!
//! Form 1: PBKDF2 with HMAC-SHA-256 makes 64 bytes of passphrase, salt and rounds. The first half
//! keys the stream, HMAC-SHA-256 of "kumiko key stream"; the second half keys the mark, HMAC-SHA-256
//! of everything before it. The mark is checked before anything is decrypted. A stream is used once,
//! because every sealing takes a new salt.
//!
//! The public key stands in the clear, so that a key can be shown without its passphrase. Files are
//! written, with tight permissions, by the caller. `docs/format/keyfile.md` has examples.

use hmac::{Hmac, KeyInit, Mac};
use pbkdf2::pbkdf2_hmac;
use sha2::Sha256;

use crate::Error;
use crate::sign::{Owner, Signer};

/// How a new file is sealed: what takes a present machine about a fifth of a second.
pub const ROUNDS: u32 = 600_000;
/// Fewer rounds than this are no protection, so they are not accepted.
pub const ROUNDS_MIN: u32 = 1_000;
/// A file that asks for more would only keep the machine busy.
pub const ROUNDS_MAX: u32 = 10_000_000;
/// The longest passphrase.
pub const PASSPHRASE_BYTES_MAX: usize = 1_024;

const MAGIC: &[u8; 11] = b"kumiko-key\x01";
const PLAIN_BYTES: usize = 11 + 1 + 32 + 32;
const SEALED_BYTES: usize = 11 + 1 + 32 + 16 + 4 + 32 + 32;

const _: () = assert!(ROUNDS_MIN <= ROUNDS && ROUNDS <= ROUNDS_MAX);

/// A key file in the clear. Whoever reads it is the owner.
pub fn plain(signer: &Signer) -> Vec<u8> {
    let mut bytes = start(signer, 0);
    bytes.extend_from_slice(signer.seed());
    assert_eq!(bytes.len(), PLAIN_BYTES);
    bytes
}

/// A key file under `passphrase`. `salt` must be drawn at random for this call.
///
/// # Errors
///
/// `TooLarge` if the passphrase is too long, `KeyFile` if the rounds are out of bounds.
pub fn seal(
    signer: &Signer,
    passphrase: &[u8],
    salt: &[u8; 16],
    rounds: u32,
) -> Result<Vec<u8>, Error> {
    let keys = keys(passphrase, salt, rounds)?;
    let mut bytes = start(signer, 1);
    bytes.extend_from_slice(salt);
    bytes.extend_from_slice(&rounds.to_be_bytes());
    bytes.extend(signer.seed().iter().zip(keys.stream()).map(|(byte, stream)| byte ^ stream));
    let mark = mac(keys.mark_key(), &bytes).finalize().into_bytes();
    bytes.extend_from_slice(&mark);
    assert_eq!(bytes.len(), SEALED_BYTES);
    Ok(bytes)
}

/// What is in a key file without its passphrase: the owner, and whether there is a passphrase.
///
/// # Errors
///
/// `KeyFile` if it is not a key file.
pub fn show(bytes: &[u8]) -> Result<(Owner, bool), Error> {
    let file = parse(bytes)?;
    Ok((file.owner, file.sealed.is_some()))
}

/// The signer in a key file.
///
/// # Errors
///
/// `KeyFile` if it is not a key file or damaged, `Passphrase` if one is needed or it is wrong.
pub fn open(bytes: &[u8], passphrase: Option<&[u8]>) -> Result<Signer, Error> {
    let file = parse(bytes)?;
    let seed = match (&file.sealed, passphrase) {
        (None, _) => file.seed,
        (Some(_), None) => return Err(Error::Passphrase { given: false }),
        (Some(sealed), Some(passphrase)) => {
            let keys = keys(passphrase, &sealed.salt, sealed.rounds)?;
            mac(keys.mark_key(), sealed.marked)
                .verify_slice(sealed.mark)
                .map_err(|_| Error::Passphrase { given: true })?;
            let mut seed = file.seed;
            seed.iter_mut().zip(keys.stream()).for_each(|(byte, stream)| *byte ^= stream);
            seed
        }
    };
    let signer = Signer::from_seed(&seed);
    if signer.owner() != file.owner {
        return Err(Error::KeyFile { reason: "the public key is not that of the secret" });
    }
    Ok(signer)
}

fn start(signer: &Signer, form: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SEALED_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.push(form);
    bytes.extend_from_slice(signer.owner().as_bytes());
    bytes
}

struct File<'a> {
    owner: Owner,
    seed: [u8; 32],
    sealed: Option<Sealed<'a>>,
}

struct Sealed<'a> {
    salt: [u8; 16],
    rounds: u32,
    marked: &'a [u8],
    mark: &'a [u8],
}

fn parse(bytes: &[u8]) -> Result<File<'_>, Error> {
    let wrong = |reason| Err(Error::KeyFile { reason });
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return wrong("not a key file of a version known here");
    };
    let array = |at: usize| -> [u8; 32] { bytes[at..at + 32].try_into().expect("32 bytes") };
    match (rest.first(), bytes.len()) {
        (Some(0), PLAIN_BYTES) => {
            Ok(File { owner: Owner::from_bytes(array(12)), seed: array(44), sealed: None })
        }
        (Some(1), SEALED_BYTES) => {
            let sealed = Sealed {
                salt: bytes[44..60].try_into().expect("16 bytes"),
                rounds: u32::from_be_bytes(bytes[60..64].try_into().expect("4 bytes")),
                marked: &bytes[..96],
                mark: &bytes[96..],
            };
            Ok(File { owner: Owner::from_bytes(array(12)), seed: array(64), sealed: Some(sealed) })
        }
        (Some(0 | 1), _) => wrong("a wrong length"),
        _ => wrong("a form that is not known here"),
    }
}

struct Keys([u8; 64]);

impl Keys {
    fn stream(&self) -> [u8; 32] {
        mac(&self.0[..32], b"kumiko key stream").finalize().into_bytes().into()
    }

    fn mark_key(&self) -> &[u8] {
        &self.0[32..]
    }
}

fn keys(passphrase: &[u8], salt: &[u8; 16], rounds: u32) -> Result<Keys, Error> {
    if PASSPHRASE_BYTES_MAX < passphrase.len() {
        let size = passphrase.len();
        return Err(Error::TooLarge { what: "passphrase", size, size_max: PASSPHRASE_BYTES_MAX });
    }
    if !(ROUNDS_MIN..=ROUNDS_MAX).contains(&rounds) {
        return Err(Error::KeyFile { reason: "the rounds are out of bounds" });
    }
    let mut keys = [0; 64];
    pbkdf2_hmac::<Sha256>(passphrase, salt, rounds, &mut keys);
    Ok(Keys(keys))
}

fn mac(key: &[u8], bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(bytes);
    mac
}

#[cfg(test)]
mod tests {
    use kumiko_base::Kind;
    use kumiko_base::draw;

    use super::{PASSPHRASE_BYTES_MAX, ROUNDS_MAX, ROUNDS_MIN, open, plain, seal, show};
    use crate::cell::Id;
    use crate::sign::Signer;

    fn signer() -> Signer {
        Signer::from_seed(&[9; 32])
    }

    #[test]
    fn files_open_again() {
        let file = plain(&signer());
        assert_eq!(show(&file).unwrap(), (signer().owner(), false));
        assert_eq!(open(&file, None).unwrap().owner(), signer().owner());

        let file = seal(&signer(), b"secret", &[3; 16], ROUNDS_MIN).unwrap();
        assert!(!file.windows(32).any(|it| it == [9; 32]));
        assert_eq!(show(&file).unwrap(), (signer().owner(), true));
        assert_eq!(open(&file, Some(b"secret")).unwrap().owner(), signer().owner());
        assert_eq!(open(&file, Some(b"Secret")).unwrap_err().kind(), Kind::Denied);
        assert_eq!(open(&file, None).unwrap_err().kind(), Kind::Denied);
    }

    /// Bytes that outlive the process: the end of the file covers all before it.
    #[test]
    fn golden() {
        let file = plain(&signer());
        assert_eq!(file.len(), 76);
        assert_eq!(&file[..12], b"kumiko-key\x01\x00");
        let file = seal(&signer(), b"secret", &[3; 16], ROUNDS_MIN).unwrap();
        assert_eq!(file.len(), 128);
        assert_eq!(
            Id::of(&file).to_string(),
            "5f3dab2f305765bfd997b4e47fbba13b3b83a455e7410bfe5658f6d95d2a61cd"
        );
    }

    #[test]
    fn limits() {
        let seal = |passphrase: usize, rounds| {
            seal(&signer(), &vec![b'x'; passphrase], &[3; 16], rounds).map(|_| ())
        };
        assert!(seal(PASSPHRASE_BYTES_MAX, ROUNDS_MIN).is_ok());
        assert_eq!(seal(PASSPHRASE_BYTES_MAX + 1, ROUNDS_MIN).unwrap_err().kind(), Kind::TooLarge);
        assert!(seal(1, ROUNDS_MIN - 1).is_err());
        assert!(seal(1, ROUNDS_MAX + 1).is_err());
    }

    #[test]
    fn damaged_files_are_refused() {
        let files = [
            (plain(&signer()), None),
            (seal(&signer(), b"secret", &[3; 16], ROUNDS_MIN).unwrap(), Some(&b"secret"[..])),
        ];
        draw::check("damaged_files_are_refused", 300, |draw| {
            let (mut file, passphrase) = draw.one_of(&files);
            match draw.below(3) {
                0 => file.truncate(draw.index(file.len())),
                1 => file.push(0),
                _ => {
                    // Not the rounds: a large number there is accepted, and takes its time.
                    let at = draw.one_of(&[draw.clone().index(60), 64 + draw.clone().index(12)]);
                    file[at] ^= 1 << draw.below(8);
                }
            }
            assert!(open(&file, passphrase).is_err());
            let _ = open(&draw.bytes(200), passphrase);
        });
    }
}
