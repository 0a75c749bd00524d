package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// Parts of an ELF file.
const (
	elfNote      = 4
	elfFrames    = 0x6474e550 // PT_GNU_EH_FRAME
	elfStack     = 0x6474e551 // PT_GNU_STACK
	elfInterp    = 3
	maxSegments  = 128
	maxInterp    = 4096 // as the kernel has it
	elfHeadBytes = 64
)

var errNoLoader = errors.New("it is no loader that can be kept from being started by itself")

// An elf is where the program headers of a file are, and the parts of each.
type elf struct {
	wide        bool // 64 bits
	at, size, n int
}

// readELF reads the head of a file. No byte order but the usual one is known: there is
// no filter for machines of another.
func readELF(head []byte) (elf, bool) {
	if len(head) < elfHeadBytes || !bytes.HasPrefix(head, []byte("\x7fELF")) || head[5] != 1 {
		return elf{}, false
	}
	e := elf{wide: head[4] == 2}
	half := func(at int) int { return int(binary.LittleEndian.Uint16(head[at:])) }
	if e.wide {
		at := binary.LittleEndian.Uint64(head[32:])
		e.at, e.size, e.n = int(min(at, 1<<30)), half(54), half(56)
	} else {
		e.at, e.size, e.n = int(min(binary.LittleEndian.Uint32(head[28:]), 1<<30)), half(42), half(44)
	}
	want := 32
	if e.wide {
		want = 56
	}
	return e, e.size == want && e.n <= maxSegments
}

// within says where in a program header the offset and the size in the file are.
func (e elf) within() (offset, size int) {
	if e.wide {
		return 8, 32
	}
	return 4, 16
}

func (e elf) get(b []byte) int {
	if e.wide {
		return int(min(binary.LittleEndian.Uint64(b), 1<<40))
	}
	return int(binary.LittleEndian.Uint32(b))
}

func (e elf) put(b []byte, v int) {
	if e.wide {
		binary.LittleEndian.PutUint64(b, uint64(v))
		return
	}
	binary.LittleEndian.PutUint32(b, uint32(v))
}

// loaderOf is the dynamic loader that a file names, "" where it names none, is no
// program or cannot be read.
func loaderOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	var head [elfHeadBytes]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return ""
	}
	e, ok := readELF(head[:])
	if !ok {
		return ""
	}
	segments := make([]byte, e.n*e.size)
	if _, err := f.ReadAt(segments, int64(e.at)); err != nil {
		return ""
	}
	offset, size := e.within()
	for ; len(segments) >= e.size; segments = segments[e.size:] {
		if binary.LittleEndian.Uint32(segments) != elfInterp {
			continue
		}
		name := make([]byte, min(e.get(segments[size:]), maxInterp))
		if _, err := f.ReadAt(name, int64(e.get(segments[offset:]))); err != nil {
			return ""
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		return string(name)
	}
	return ""
}

// neverAlone is a loader that the kernel refuses to execute, and loads for
// programs all the same: as a program of its own it names the root folder as its
// loader, which of a loader nobody reads.
func neverAlone(loader []byte) ([]byte, error) {
	e, ok := readELF(loader)
	if !ok || e.at+e.n*e.size > len(loader) {
		return nil, errNoLoader
	}
	offset, size := e.within()
	for _, spare := range []uint32{elfInterp, elfNote, elfFrames, elfStack} {
		for i := range e.n {
			s := loader[e.at+i*e.size:][:e.size]
			if binary.LittleEndian.Uint32(s) != spare {
				continue
			}
			binary.LittleEndian.PutUint32(s, elfInterp)
			e.put(s[offset:], len(loader))
			e.put(s[size:], len("/\x00"))
			return append(loader, "/\x00"...), nil
		}
	}
	return nil, errNoLoader
}
