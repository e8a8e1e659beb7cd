"""Random commands: mostly sensible, now and then not."""

# Replies whose order is free.
UNORDERED = {"SMEMBERS", "SINTER", "SUNION", "SDIFF", "HGETALL", "HKEYS", "HVALS", "KEYS"}
SCANS = {"SCAN", "SSCAN", "HSCAN", "ZSCAN"}
# Random picks; those that change data are made so that they take everything.
PICKS = {"SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "RANDOMKEY", "SPOP"}
# Replies that are times.
TIMES = {"TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"}

KEYS = [f"k{number}" for number in range(6)]
MEMBERS = ["a", "b", "c", "d", "e", "1", "2", "-3", "10", "0.5", "", "\xfe\xff", "long" * 20]
VALUES = MEMBERS + ["5", "100", "3.5", "-7", "9223372036854775807", "1e3", "abc", "foobar"]
INTEGERS = ["0", "1", "2", "3", "-1", "-2", "-3", "5", "10", "100", "-100"]
SCORES = ["0", "1", "2", "3", "-1", "1.5", "2.25", "0.1", "inf", "-inf", "1e10", "3"]


def near(name, value):
    """A time, rounded to what may differ."""
    seconds = value / 1000 if name.startswith("P") else value
    return ("about", round(seconds / 1000))


def key(draw):
    return draw.choice(KEYS)


def member(draw):
    return draw.choice(MEMBERS)


def value(draw):
    return draw.choice(VALUES)


def integer(draw):
    return draw.choice(INTEGERS)


def score(draw):
    return draw.choice(SCORES)


def field(draw):
    return draw.choice("fghij")


def rank(draw):
    return integer(draw)


def far(draw):
    """A time to live that does not end during a round."""
    return draw.choice(["100000", "5000000", "90000000", "-1", "0"])


def at(draw):
    return draw.choice(["33177117420", "33177117421", "33177117422"])


def at_ms(draw):
    return at(draw) + "500"


def even(draw):
    """The key whose members all have one score, so that they have an order by name."""
    return "even"


def bit(draw):
    return draw.choice("01")


def place(draw):
    return draw.choice(["0", "1", "7", "8", "9", "15", "30", "100"])


def score_end(draw):
    return draw.choice(["-inf", "+inf", "(1", "1", "2", "(2.5", "3", "-1", "inf"])


def name_end(draw):
    return draw.choice(["-", "+", "[a", "(a", "[c", "(d", "[1", "[", "("])


def side(draw):
    return draw.choice(["LEFT", "RIGHT"])


def extreme(draw):
    return draw.choice(["MIN", "MAX"])


def count(draw):
    return draw.choice(["0", "1", "2", "3", "100"])


def many(make, low=1, high=3):
    """Several words of one kind."""
    return lambda draw: [make(draw) for _ in range(draw.randint(low, high))]


def pairs(left, right, high=3):
    """Several pairs of words."""

    def make(draw):
        return [word for _ in range(draw.randint(1, high)) for word in (left(draw), right(draw))]

    return make


def maybe(*parts):
    """The parts, or nothing."""
    return lambda draw: [word for part in parts for word in words(part, draw)] if draw.random() < 0.4 else []


def one(*choices):
    """One of the choices, each a list of parts."""
    return lambda draw: [word for part in draw.choice(choices) for word in words(part, draw)]


def keys_counted(draw):
    keys = [key(draw) for _ in range(draw.randint(1, 3))]
    return [str(len(keys)), *keys]


def weights(draw):
    """numkeys, keys, and weights that fit."""
    keys = keys_counted(draw)
    if draw.random() < 0.5:
        keys += ["WEIGHTS", *(draw.choice(["1", "2", "-1", "0.5", "0"]) for _ in keys[1:])]
    return keys


def words(part, draw):
    if isinstance(part, str):
        return [part]
    made = part(draw)
    return made if isinstance(made, list) else [made]


EXPIRE_RULE = maybe(one(["NX"], ["XX"], ["NX", "XX"]))
# Only absolute times can be compared: the two servers do not run in the same millisecond.
AT_RULE = maybe(one(["NX"], ["XX"], ["GT"], ["LT"], ["GT", "LT"], ["XX", "LT"]))
AGGREGATE = maybe("AGGREGATE", one(["SUM"], ["MIN"], ["MAX"]))
LIMIT = maybe("LIMIT", integer, integer)
WITHSCORES = maybe("WITHSCORES")
BIT_TYPE = one(["u8"], ["i8"], ["u4"], ["i5"], ["u16"], ["i64"], ["u63"])
UNIT = maybe(one(["BYTE"], ["BIT"]))
RANGE = one(
    [rank, rank], [rank, rank, "REV"], [score_end, score_end, "BYSCORE"], [score_end, score_end, "BYSCORE", "REV"]
)
BITFIELD_STEP = one(
    ["GET", BIT_TYPE, place], ["SET", BIT_TYPE, place, value], ["INCRBY", BIT_TYPE, place, integer],
    ["OVERFLOW", one(["WRAP"], ["SAT"], ["FAIL"]), "INCRBY", BIT_TYPE, place, integer], ["SET", BIT_TYPE, "#1", integer],
)

FORMS = [
    ["GET", key], ["SET", key, value],
    ["SET", key, value, maybe(one(["NX"], ["XX"])), maybe("GET"), maybe(one(["EX", far], ["PX", far], ["KEEPTTL"]))],
    ["SETNX", key, value], ["SETEX", key, far, value], ["PSETEX", key, far, value], ["GETSET", key, value],
    ["GETDEL", key], ["GETEX", key, maybe(one(["EX", far], ["PX", far], ["PERSIST"]))], ["MGET", many(key)],
    ["MSET", pairs(key, value)], ["MSETNX", pairs(key, value)], ["APPEND", key, value], ["STRLEN", key],
    ["SETRANGE", key, place, value], ["GETRANGE", key, integer, integer], ["SUBSTR", key, integer, integer],
    ["INCR", key], ["DECR", key], ["INCRBY", key, integer], ["DECRBY", key, integer], ["INCRBYFLOAT", key, score],
    ["LCS", key, key, maybe(one(["LEN"], ["IDX"], ["IDX", "WITHMATCHLEN"], ["IDX", "MINMATCHLEN", integer]))],
    ["SETBIT", key, place, bit], ["GETBIT", key, place], ["BITCOUNT", key, maybe(integer, integer, UNIT)],
    ["BITPOS", key, bit, maybe(integer, maybe(integer, UNIT))], ["BITFIELD", key, BITFIELD_STEP, maybe(BITFIELD_STEP)],
    ["BITFIELD_RO", key, "GET", BIT_TYPE, place], ["BITOP", one(["AND"], ["OR"], ["XOR"]), key, many(key)],
    ["BITOP", "NOT", key, key],
    ["HSET", key, pairs(field, value)], ["HMSET", key, pairs(field, value)], ["HSETNX", key, field, value],
    ["HGET", key, field], ["HMGET", key, many(field)], ["HGETALL", key], ["HKEYS", key], ["HVALS", key],
    ["HDEL", key, many(field)], ["HEXISTS", key, field], ["HLEN", key], ["HSTRLEN", key, field],
    ["HINCRBY", key, field, integer], ["HINCRBYFLOAT", key, field, score],
    ["HRANDFIELD", key, maybe(integer, maybe("WITHVALUES"))], ["HSCAN", key, "0", "COUNT", "100"],
    ["SADD", key, many(member)], ["SADD", key, many(member)], ["SREM", key, many(member)], ["SISMEMBER", key, member],
    ["SMISMEMBER", key, many(member)], ["SCARD", key], ["SMEMBERS", key], ["SMOVE", key, key, member],
    ["SPOP", key, "100"], ["SRANDMEMBER", key, maybe(integer)], ["SINTER", many(key)], ["SUNION", many(key)],
    ["SDIFF", many(key)], ["SINTERSTORE", key, many(key)], ["SUNIONSTORE", key, many(key)],
    ["SDIFFSTORE", key, many(key)], ["SINTERCARD", keys_counted, maybe("LIMIT", count)], ["SSCAN", key, "0", "COUNT", "100"],
    ["ZADD", key, pairs(score, member)],
    ["ZADD", key, maybe(one(["NX"], ["XX"], ["GT"], ["LT"], ["XX", "GT"])), maybe("CH"), pairs(score, member)],
    ["ZADD", key, "INCR", score, member], ["ZINCRBY", key, score, member], ["ZREM", key, many(member)],
    ["ZSCORE", key, member], ["ZMSCORE", key, many(member)], ["ZCARD", key], ["ZRANK", key, member],
    ["ZREVRANK", key, member], ["ZCOUNT", key, score_end, score_end], ["ZLEXCOUNT", even, name_end, name_end],
    ["ZADD", even, "0", member, "0", member], ["ZREM", even, member], ["ZREMRANGEBYLEX", even, name_end, name_end],
    ["ZRANGE", even, name_end, name_end, "BYLEX", maybe("REV"), LIMIT], ["ZRANGEBYLEX", even, name_end, name_end, LIMIT],
    ["ZREVRANGEBYLEX", even, name_end, name_end, LIMIT],
    ["ZRANGE", key, RANGE, LIMIT, WITHSCORES], ["ZRANGE", key, RANGE], ["ZRANGESTORE", key, key, RANGE],
    ["ZREVRANGE", key, rank, rank, WITHSCORES], ["ZRANGEBYSCORE", key, score_end, score_end, WITHSCORES, LIMIT],
    ["ZREVRANGEBYSCORE", key, score_end, score_end, WITHSCORES, LIMIT],
    ["ZREMRANGEBYRANK", key, rank, rank], ["ZREMRANGEBYSCORE", key, score_end, score_end],
    ["ZPOPMIN", key, maybe(count)], ["ZPOPMAX", key, maybe(count)], ["ZMPOP", keys_counted, extreme, maybe("COUNT", count)],
    ["ZUNION", weights, AGGREGATE, WITHSCORES], ["ZINTER", weights, AGGREGATE, WITHSCORES],
    ["ZDIFF", keys_counted, WITHSCORES], ["ZINTERCARD", keys_counted, maybe("LIMIT", count)],
    ["ZUNIONSTORE", key, weights, AGGREGATE], ["ZINTERSTORE", key, weights, AGGREGATE], ["ZDIFFSTORE", key, keys_counted],
    ["ZRANDMEMBER", key, maybe(integer, WITHSCORES)], ["ZSCAN", key, "0", "COUNT", "100"],
    ["BZPOPMIN", key, "0.001"], ["BZPOPMAX", key, "0.001"], ["BZMPOP", "0.001", keys_counted, extreme],
    ["LPUSH", key, many(value)], ["RPUSH", key, many(value)], ["LPUSHX", key, value], ["RPUSHX", key, value],
    ["LPOP", key, maybe(count)], ["RPOP", key, maybe(count)], ["LLEN", key], ["LINDEX", key, integer],
    ["LRANGE", key, integer, integer], ["LSET", key, integer, value], ["LREM", key, integer, value],
    ["LTRIM", key, integer, integer], ["LINSERT", key, one(["BEFORE"], ["AFTER"]), value, value],
    ["LPOS", key, value, maybe("RANK", integer), maybe("COUNT", count), maybe("MAXLEN", count)],
    ["LMOVE", key, key, side, side], ["RPOPLPUSH", key, key], ["LMPOP", keys_counted, side, maybe("COUNT", count)],
    ["BLPOP", many(key), "0.001"], ["BRPOP", many(key), "0.001"], ["BLMOVE", key, key, side, side, "0.001"],
    ["BRPOPLPUSH", key, key, "0.001"], ["BLMPOP", "0.001", keys_counted, side],
    ["DEL", many(key)], ["UNLINK", key], ["EXISTS", many(key)], ["TYPE", key], ["TOUCH", many(key)],
    ["RENAME", key, key], ["RENAMENX", key, key], ["COPY", key, key, maybe("REPLACE")], ["KEYS", one(["*"], ["k[0-3]"])],
    ["SCAN", "0", "COUNT", "1000", maybe("TYPE", one(["string"], ["zset"]))], ["RANDOMKEY"], ["DBSIZE"],
    ["EXPIRE", key, far, EXPIRE_RULE], ["PEXPIRE", key, far, EXPIRE_RULE], ["TTL", key], ["PTTL", key],
    ["EXPIREAT", key, at, AT_RULE], ["PEXPIREAT", key, at_ms, AT_RULE],
    ["EXPIRETIME", key], ["PEXPIRETIME", key], ["PERSIST", key],
    ["SORT", key, LIMIT, maybe("GET", "#"), one(["ASC"], ["DESC"]), "ALPHA"],
    ["SORT", key, LIMIT, maybe("DESC")], ["SORT", key, "ALPHA", "STORE", key],
]


def make(draw):
    """One command."""
    command = [word for part in draw.choice(FORMS) for word in words(part, draw)]
    if draw.random() < 0.02:
        # Something that does not belong there.
        command[draw.randrange(1, len(command) + 1) - 1 or -1] = draw.choice(["", "x", "-5", "1.5", "NX"])
    elif draw.random() < 0.01 and 1 < len(command):
        del command[-1]
    return [word.encode("latin-1") if any(128 <= ord(letter) for letter in word) else word for word in command]
