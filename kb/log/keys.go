package log

import "runloop.dev/rlp/kb/db"

// The keys of the log.
//
//	m seq                     last record number given out
//	m tree                    size and root of the log's tree
//	m pruned                  up to which record the log was pruned
//	m pruning                 what was pruned is not yet gone altogether
//	m begun                   the log was begun here
//	m owed                    a checkpoint was due and could not be made
//	m journal                 which key the journals had that were taken in last
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
	SpaceRecord     = 'a'
	spaceRun        = 'r'
	spaceAgent      = 'g'
	spaceOther      = 'n'
	SpaceState      = 'j'
	spaceOpen       = 'U'
	SpaceTile       = 'T'
	SpaceCheckpoint = 'C'
	SpaceMark       = 'P'
	spaceFinding    = 'F'
)

func keySeq() []byte { return []byte("mseq") }

func keyHead() []byte { return []byte("mtree") }

func keyPruned() []byte { return []byte("mpruned") }

func keyPruning() []byte { return []byte("mpruning") }

func keyBegun() []byte { return []byte("mbegun") }

func keyOwed() []byte { return []byte("mowed") }

func keyJournal() []byte { return []byte("mjournal") }

func keyState(run string) []byte { return append([]byte{SpaceState}, run...) }

func keyOpen(run string) []byte { return append([]byte{spaceOpen}, run...) }

func keyRecord(seq uint64) []byte { return db.Number([]byte{SpaceRecord}, seq) }

func keyOther(seq uint64) []byte { return db.Number([]byte{spaceOther}, seq) }

func keyTile(level int, n uint64) []byte {
	return db.Number([]byte{SpaceTile, byte(level)}, n)
}

func keyCheckpoint(size uint64) []byte { return db.Number([]byte{SpaceCheckpoint}, size) }

func keyMark(seq uint64) []byte { return db.Number([]byte{SpaceMark}, seq) }

func keyFinding(sum []byte) []byte { return append([]byte{spaceFinding}, sum...) }

func keyRun(run string, runSeq uint64) []byte {
	return db.Number(db.Named(spaceRun, run), runSeq)
}

func keyAgent(agent string, seq uint64) []byte {
	return db.Number(db.Named(spaceAgent, agent), seq)
}
