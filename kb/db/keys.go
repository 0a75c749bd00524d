// Package db is badger as a store opens it: strict, small, and written to only while
// its disk and its process can take it. Who keeps something in it owns the keys.
package db

import "encoding/binary"

// Keys of the database begin with a byte that says whose they are. Numbers are big
// endian, so that their order is the order of keys; a name is preceded by its
// length, so that no two keys meet.

// Named is the prefix of a space under a name of at most 65535 bytes.
func Named(space byte, name string) []byte {
	k := make([]byte, 0, 3+len(name)+16)
	k = append(k, space)
	k = binary.BigEndian.AppendUint16(k, uint16(len(name)))
	return append(k, name...)
}

// SplitNamed takes the name and what follows it out of a key.
func SplitNamed(k []byte) (name string, rest []byte, ok bool) {
	if len(k) < 3 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(k[1:]))
	if len(k) < 3+n {
		return "", nil, false
	}
	return string(k[3 : 3+n]), k[3+n:], true
}

// Number adds a number to a key.
func Number(k []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(k, n) }

// TailNumber is the number that a key ends in.
func TailNumber(k []byte) uint64 {
	if len(k) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k[len(k)-8:])
}
