//! The two tables of syllables: 256 that begin a group and 256 that end one, three letters each,
//! written without separators in the order of the bytes they stand for.

/// The syllables that begin a group of two bytes.
pub(super) const PREFIXES: &str = "\
    dozmarbinwansamlitsighidfidlissogdirwacsabwissib\
    rigsoldopmodfoglidhopdardorlorhodfolrintogsilmir\
    holpaslacrovlivdalsatlibtabhanticpidtorbolfosdot\
    losdilforpilramtirwintadbicdifrocwidbisdasmidlop\
    rilnardapmolsanlocnovsitnidtipsicropwitnatpanmin\
    ritpodmottamtolsavposnapnopsomfinfonbanmorworsip\
    ronnorbotwicsocwatdolmagpicdavbidbaltimtasmallig\
    sivtagpadsaldivdactansidfabtarmonranniswolmispal\
    lasdismaprabtobrollatlonnodnavfignomnibpagsopral\
    bilhaddocridmocpacravripfaltodtiltinhapmicfanpat\
    taclabmogsimsonpinlomrictapfirhasbosbatpochactid\
    havsaplindibhosdabbitbarracparloddosbortochilmac\
    tomdigfilfasmithobharmighinradmashalraglagfadtop\
    mophabnilnosmilfopfamdatnoldinhatnacrisfotribhoc\
    nimlarfitwalrapsarnalmoslandondanladdovrivbacpol\
    laptalpitnambonrostonfodponsovnocsorlavmatmipfip";

/// The syllables that end a group of two bytes.
pub(super) const SUFFIXES: &str = "\
    zodnecbudwessevpersutletfulpensytdurwepserwylsun\
    rypsyxdyrnuphebpeglupdepdysputlughecryttyvsydnex\
    lunmeplutseppesdelsulpedtemledtulmetwenbynhexfeb\
    pyldulhetmevruttylwydtepbesdexsefwycburderneppur\
    rysrebdennutsubpetrulsynregtydsupsemwynrecmegnet\
    secmulnymtevwebsummutnyxrextebfushepbenmuswyxsym\
    selrucdecwexsyrwetdylmynmesdetbetbeltuxtugmyrpel\
    syptermebsetdutdegtexsurfeltudnuxruxrenwytnubmed\
    lytdusnebrumtynseglyxpunresredfunrevrefmectedrus\
    bexlebduxrynnumpyxrygryxfeptyrtustyclegnemfermer\
    tenlusnussyltecmexpubrymtucfyllepdebbermughuttun\
    bylsudpemdevlurdefbusbeprunmelpexdytbyttyplevmyl\
    wedducfurfexnulluclennerlexrupnedlecrydlydfenwel\
    nydhusrelrudneshesfetdesretdunlernyrsebhulryllud\
    remlysfynwerrycsugnysnyllyndyndemluxfedsedbecmun\
    lyrtesmudnytbyrsenwegfyrmurtelreptegpecnelnevfes";
