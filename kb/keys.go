package kb

import (
	"encoding/binary"
)

// The keys of the database. Numbers are big endian, so that their order is the
// order of keys; a name is preceded by its length, so that no two keys meet.
//
//	m rev                     last revision given out
//	m seq                     last record number given out
//	m schema                  the version of all this
//	m index                   by which rules the indexes are made; absent: to be made
//	m restore                 a restore is under way
//	m tree                    size and root of the log's tree
//	m pruned                  up to which record the log was pruned
//	m pruning                 what was pruned is not yet gone altogether
//	m begun                   the log was begun here
//	m owed                    a checkpoint was due and could not be made
//	m journal                 which key the journals had that were taken in last
//	k <domain> key            meta of a value            v <domain> key   meta and value
//	h <domain> key            who wrote it, and what was there before
//	x <domain> doc            what the indexes know of a value; doc is its revision
//	i <domain> index <term> chunk   in which documents a term is
//	t <domain>                tally of a domain
//	o id                      what a client's operation answered, for ten minutes
//	a seq                     a record
//	r <run> run_seq           its number, by run
//	g <agent> seq             by agent
//	n seq                     records that are not an allowed decision
//	j run                     how far a journal was read
//	U run                     its journal was not read to its end
//	T level tile              hashes of the log's tree
//	C size                    a checkpoint of the log
//	P seq                     a mark: up to there records were pruned
//	F digest                  what was found and is on record
const (
	spaceMeta   = 'k'
	spaceData   = 'v'
	spaceData1  = 'd' // the value alone, in schema 1
	spaceChain  = 'h'
	spaceDoc    = 'x'
	spaceIndex  = 'i'
	spaceTally  = 't'
	spaceOp     = 'o'
	spaceRecord = 'a'
	spaceRun    = 'r'
	spaceAgent  = 'g'
	spaceOther  = 'n'
	spaceState  = 'j'
	spaceOpen   = 'U'

	spaceTile       = 'T'
	spaceCheckpoint = 'C'
	spaceMark       = 'P'
	spaceFinding    = 'F'
)

func keyRev() []byte     { return []byte("mrev") }
func keySeq() []byte     { return []byte("mseq") }
func keySchema() []byte  { return []byte("mschema") }
func keyIndex() []byte   { return []byte("mindex") }
func keyRestore() []byte { return []byte("mrestore") }
func keyHead() []byte    { return []byte("mtree") }
func keyPruned() []byte  { return []byte("mpruned") }
func keyPruning() []byte { return []byte("mpruning") }
func keyBegun() []byte   { return []byte("mbegun") }
func keyOwed() []byte    { return []byte("mowed") }
func keyJournal() []byte { return []byte("mjournal") }

// named is the prefix of a space under a name of at most 65535 bytes.
func named(space byte, name string) []byte {
	k := make([]byte, 0, 3+len(name)+16)
	k = append(k, space)
	k = binary.BigEndian.AppendUint16(k, uint16(len(name)))
	return append(k, name...)
}

func keyMeta(domain, key string) []byte { return append(named(spaceMeta, domain), key...) }
func keyData(domain, key string) []byte { return append(named(spaceData, domain), key...) }
func keyChain(domain, key string) []byte {
	return append(named(spaceChain, domain), key...)
}

func keyDoc(domain string, doc uint64) []byte { return number(named(spaceDoc, domain), doc) }
func keyTally(domain string) []byte           { return named(spaceTally, domain) }

// keyTerm is the prefix of a term's chunks; a term has at most 255 bytes.
func keyTerm(domain string, index byte, term string) []byte {
	k := append(named(spaceIndex, domain), index, byte(len(term)))
	return append(k, term...)
}

func keyChunk(domain string, index byte, term string, doc uint64) []byte {
	return number(keyTerm(domain, index, term), doc>>chunkBits)
}

// splitNamed takes the name and what follows it out of a key.
func splitNamed(k []byte) (name string, rest []byte, ok bool) {
	if len(k) < 3 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(k[1:]))
	if len(k) < 3+n {
		return "", nil, false
	}
	return string(k[3 : 3+n]), k[3+n:], true
}

func keyOp(id []byte) []byte     { return append([]byte{spaceOp}, id...) }
func keyState(run string) []byte { return append([]byte{spaceState}, run...) }
func keyOpen(run string) []byte  { return append([]byte{spaceOpen}, run...) }

func keyRecord(seq uint64) []byte { return number([]byte{spaceRecord}, seq) }
func keyOther(seq uint64) []byte  { return number([]byte{spaceOther}, seq) }
func keyTile(level int, n uint64) []byte {
	return number([]byte{spaceTile, byte(level)}, n)
}
func keyCheckpoint(size uint64) []byte { return number([]byte{spaceCheckpoint}, size) }
func keyMark(seq uint64) []byte        { return number([]byte{spaceMark}, seq) }
func keyFinding(sum []byte) []byte     { return append([]byte{spaceFinding}, sum...) }
func keyRun(run string, runSeq uint64) []byte {
	return number(named(spaceRun, run), runSeq)
}

func keyAgent(agent string, seq uint64) []byte {
	return number(named(spaceAgent, agent), seq)
}

func number(k []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(k, n) }

// tailNumber is the number that a key ends in.
func tailNumber(k []byte) uint64 {
	if len(k) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k[len(k)-8:])
}
