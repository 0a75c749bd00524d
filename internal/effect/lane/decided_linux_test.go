package lane

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of a program that is known by what it holds nothing else is executed, however often
// another one is put in its place while it is started.
func TestAProgramIsWhatItHolds(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		const good, evil = "#!/bin/sh\necho good\n", "#!/bin/sh\necho evil\n"
		dir, l := realDir(t), newLane(t, name)
		path := put(t, filepath.Join(dir, "program"), evil)
		sum := sha256.Sum256([]byte(good))
		c := shell(t, "")
		c.Program, c.Argv = path, []string{"program"}
		if r := run(t, l, c); string(r.Stdout.Data) != "evil\n" {
			t.Fatalf("control: %+v", r)
		}
		c.SHA256 = hex.EncodeToString(sum[:])
		if _, err := l.Run(t.Context(), c); !errors.Is(err, ErrNotProgram) ||
			!strings.Contains(err.Error(), "is to be "+c.SHA256) {
			t.Errorf("another file: %v", err)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				text := []string{good, evil}[i%2]
				next := filepath.Join(dir, "next")
				if os.WriteFile(next, []byte(text), 0o700) != nil || os.Rename(next, path) != nil {
					return
				}
			}
		}()
		ran := 0
		for range 30 {
			r, err := l.Run(t.Context(), c)
			switch {
			case err == nil && string(r.Stdout.Data) == "good\n":
				ran++
			case err == nil: // any refusal will do: bubblewrap has its own for a file that goes
				t.Errorf("another one was executed: %+v", r)
			}
		}
		close(stop)
		<-stopped
		put(t, path, good)
		if r := run(t, l, c); string(r.Stdout.Data) != "good\n" {
			t.Errorf("the file itself: %+v", r)
		}
		t.Logf("it ran %d times of 30", ran)
	})
	c := shell(t, "true")
	c.SHA256 = strings.Repeat("0", 64)
	var unsupported *UnsupportedError
	if _, err := newNative(t).Run(t.Context(), c); !errors.As(err, &unsupported) {
		t.Errorf("native: %v", err)
	}
}
