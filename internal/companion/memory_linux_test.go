package companion

import (
	"os"
	"os/exec"
	"testing"
)

// A program in memory starts, and nobody changes it any more.
func TestMemory(t *testing.T) {
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	f, err := find(t, packed(t, "small", string(program))).Memory()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if out, err := exec.Command(f.Name()).CombinedOutput(); err != nil {
		t.Errorf("it does not start: %v %s", err, out)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("it can be written to")
	}
	if err := f.Truncate(1); err == nil {
		t.Error("it can be cut")
	}
}
