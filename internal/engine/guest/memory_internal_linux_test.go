package guest

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A machine that has less memory than a guest may have ends the guest, and not
// the program that runs it.
func TestMemoryThatIsNotThere(t *testing.T) {
	const page = 64 << 10
	ended := 0
	m := memory{limit: 1 << 60, refused: func() { t.Error("the limit is not passed") }, missing: func() { ended++ }}
	m.Allocate(page, 1<<60) // more than any machine has room for
	defer m.Free()
	m.Reallocate(page)[page-1] = 7
	if b := m.Reallocate(2 * page); len(b) != 2*page || b[page-1] != 7 || b[page] != 0 {
		t.Error("control: what is there is had, and kept")
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errNoMemory) || ended != 1 {
			t.Errorf("%v, ended %d times", err, ended)
		}
	}()
	m.Reallocate(1 << 59)
	t.Error("it was had")
}

// What is reserved is not promised: a thousand guests that may have 4 GiB each
// count for what they have. Memory that is opened counts, touched or not.
func TestWhatIsReservedIsNotPromised(t *testing.T) {
	promised := func() int {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmData:")
		kib, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return kib << 10
	}
	before := promised()
	for range 1000 {
		m := memory{limit: 1 << 32}
		m.Allocate(pageSize, 1<<32)
		defer m.Free()
		if m.room() != 1<<32 {
			t.Fatalf("there is room for %d bytes", m.room())
		}
		if b := m.Reallocate(2 * pageSize); len(b) != 2*pageSize || cap(b) != len(b) {
			t.Fatalf("%d bytes", len(b))
		}
	}
	if more := promised() - before; more > 512<<20 {
		t.Errorf("4 TiB are reserved, 125 MiB are had, and %d MiB are promised", more>>20)
	}
	control, err := syscall.Mmap(-1, 0, 1<<30, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(control)
	if more := promised() - before; more < 1<<30 {
		t.Errorf("control: of memory that can be written %d MiB are promised", more>>20)
	}
}

// A memory grows where it is, with what is in it and zeros behind, and what is
// behind it is nobody's.
func TestAMemoryGrowsInPlace(t *testing.T) {
	m := memory{limit: 8 * pageSize}
	m.Allocate(pageSize, 1<<32)
	defer m.Free()
	first := m.Reallocate(pageSize)
	first[pageSize-1] = 7
	for size := uint64(pageSize); size <= 8*pageSize; size += pageSize {
		b := m.Reallocate(size)
		if &b[0] != &first[0] || b[pageSize-1] != 7 || size > pageSize && b[size-1] != 0 {
			t.Fatalf("at %d bytes it is elsewhere, or another", size)
		}
	}
	reads := func(at int) (fault bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { fault = recover() != nil }()
		runtime.KeepAlive(m.reserved[at])
		return false
	}
	if reads(8*pageSize-1) || !reads(8*pageSize) || !reads(8*pageSize+guard-1) {
		t.Error("control: its last byte is there; what is behind it is not")
	}
}
