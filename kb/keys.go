package kb

import (
	"encoding/binary"
)

// The keys of the database. Numbers are big endian, so that their order is the
// order of keys; a name is preceded by its length, so that no two keys meet.
//
//	m rev                     last revision given out
//	m seq                     last record number given out
//	k <domain> key            meta of a value            d <domain> key   the value
//	o id                      what a client's operation answered, for ten minutes
//	a seq                     a record
//	r <run> run_seq           its number, by run
//	g <agent> seq             by agent
//	n seq                     records that are not an allowed decision
//	j run                     how far a journal was read
const (
	spaceMeta   = 'k'
	spaceData   = 'd'
	spaceOp     = 'o'
	spaceRecord = 'a'
	spaceRun    = 'r'
	spaceAgent  = 'g'
	spaceOther  = 'n'
	spaceState  = 'j'
)

func keyRev() []byte { return []byte("mrev") }
func keySeq() []byte { return []byte("mseq") }

// named is the prefix of a space under a name of at most 65535 bytes.
func named(space byte, name string) []byte {
	k := make([]byte, 0, 3+len(name)+16)
	k = append(k, space)
	k = binary.BigEndian.AppendUint16(k, uint16(len(name)))
	return append(k, name...)
}

func keyMeta(domain, key string) []byte { return append(named(spaceMeta, domain), key...) }
func keyData(domain, key string) []byte { return append(named(spaceData, domain), key...) }
func keyOp(id []byte) []byte            { return append([]byte{spaceOp}, id...) }
func keyState(run string) []byte        { return append([]byte{spaceState}, run...) }

func keyRecord(seq uint64) []byte { return number([]byte{spaceRecord}, seq) }
func keyOther(seq uint64) []byte  { return number([]byte{spaceOther}, seq) }
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
