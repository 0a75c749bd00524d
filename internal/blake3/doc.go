// Package blake3 is BLAKE3 in two makes: that of zeebo/blake3, whose vector code
// hashes megabytes, for the whole program, and a plain one for the small program,
// which hashes names and arguments and would ask the processor what it can do
// each time that it starts. Their digests are the same.
package blake3
