// Package evidence makes statements about an audit log that a stranger can
// check: signed checkpoints, proofs in files, and the places outside the host
// where checkpoints are told.
//
// A statement is true or it is refused: whatever is read here, from a proof to a
// key, is parsed so strictly that there is one way to write it, bounded in size,
// and believed only through the public key that the reader was given. A file
// says nothing of itself.
//
// The log is a Merkle tree (RFC 6962) whose leaf number n is the record with seq
// n+1, exactly as it is exported as a line of JSON, without the line end. The
// package knows no storage: hashes, records and stored checkpoints are handed in.
package evidence
