package guest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// The engine guards the native code of a file by a checksum of its own, and
// nothing else of it: not where each function begins. A wrong bit there is a
// jump to anywhere. So what lies around the code has a checksum here, which
// costs little as it is small.
const (
	engineTag = "WAZEVO"

	// maxEdges bounds what is read around the code.
	maxEdges = 64 << 20
)

var errLayout = errors.New("not laid out as the engine does it")

// edges is the checksum of all of a cached file but its native code: the tag,
// the engine's version, a count, an offset for each function, the size of the
// code; and what follows the code. The size of the file is part of it.
func edges(name string) ([sha256.Size]byte, error) {
	var none [sha256.Size]byte
	f, err := os.Open(name)
	if err != nil {
		return none, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	head := make([]byte, len(engineTag)+1)
	if _, err := io.ReadFull(f, head); err != nil || !bytes.HasPrefix(head, []byte(engineTag)) {
		return none, errLayout
	}
	version := make([]byte, int(head[len(engineTag)])+4)
	if _, err := io.ReadFull(f, version); err != nil {
		return none, errLayout
	}
	functions := int64(binary.LittleEndian.Uint32(version[len(version)-4:]))
	if 8*functions > min(info.Size(), maxEdges) {
		return none, errLayout
	}
	table := make([]byte, 8*functions+8)
	if _, err := io.ReadFull(f, table); err != nil {
		return none, errLayout
	}
	start := int64(len(head) + len(version) + len(table))
	code := binary.LittleEndian.Uint64(table[8*functions:])
	if code > uint64(info.Size()-start) || info.Size()-start-int64(code) > maxEdges {
		return none, errLayout
	}
	h := sha256.New()
	h.Write(head)
	h.Write(version)
	h.Write(table)
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(info.Size())))
	tail := io.NewSectionReader(f, start+int64(code), info.Size())
	if _, err := io.Copy(h, tail); err != nil {
		return none, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
