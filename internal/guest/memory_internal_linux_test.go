package guest

import (
	"errors"
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
