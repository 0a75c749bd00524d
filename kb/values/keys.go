package values

import "runloop.dev/rlp/kb/db"

// The keys of values.
//
//	m rev                     last revision given out
//	m index                   by which rules the indexes are made; absent: to be made
//	k <domain> key            meta of a value
//	v <domain> key            meta and value
//	h <domain> key            who wrote it, and what was there before
//	x <domain> doc            what the indexes know of a value; doc is its revision
//	i <domain> index <term> chunk   in which documents a term is
//	t <domain>                tally of a domain
//	o id                      what a client's operation answered, for ten minutes
const (
	spaceMeta  = 'k'
	SpaceData  = 'v'
	spaceData1 = 'd' // the value alone, in schema 1
	SpaceChain = 'h'
	spaceDoc   = 'x'
	spaceIndex = 'i'
	spaceTally = 't'
	spaceOp    = 'o'
)

func keyRev() []byte { return []byte("mrev") }

func keyIndex() []byte { return []byte("mindex") }

func keyMeta(domain, key string) []byte { return append(db.Named(spaceMeta, domain), key...) }

func keyData(domain, key string) []byte { return append(db.Named(SpaceData, domain), key...) }

func keyChain(domain, key string) []byte {
	return append(db.Named(SpaceChain, domain), key...)
}

func keyDoc(domain string, doc uint64) []byte { return db.Number(db.Named(spaceDoc, domain), doc) }

func keyTally(domain string) []byte { return db.Named(spaceTally, domain) }

// keyTerm is the prefix of a term's chunks; a term has at most 255 bytes.
func keyTerm(domain string, index byte, term string) []byte {
	k := append(db.Named(spaceIndex, domain), index, byte(len(term)))
	return append(k, term...)
}

func keyChunk(domain string, index byte, term string, doc uint64) []byte {
	return db.Number(keyTerm(domain, index, term), doc>>chunkBits)
}

func keyOp(id []byte) []byte { return append([]byte{spaceOp}, id...) }
