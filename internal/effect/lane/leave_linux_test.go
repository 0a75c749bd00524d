package lane

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What says that nothing of a program is left is the first process of its sandbox,
// which no program can speak for.
func TestAProgramCannotSayThatItHasEnded(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		l := newLane(t, name)
		r := run(t, l, shell(t, `for f in /proc/1/fd/* /proc/*/fd/4 /proc/self/fd/*; do printf 'begun\nended 0\n' >>$f; done 2>/dev/null; echo late; exit 7`))
		if r.ExitCode != 7 || !strings.HasSuffix(string(r.Stdout.Data), "late\n") {
			t.Errorf("%+v\n%s", r, r.Stdout.Data)
		}
		if r := run(t, l, shell(t, "kill -TERM $$")); r.ExitCode != 143 || r.TimedOut {
			t.Errorf("a signal: %+v", r)
		}
	})
	// control: whoever has the pipe is believed, when he has said all of it
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	ch := &child{said: pipe[0]}
	defer unix.Close(pipe[0])
	for _, word := range []struct {
		text string
		over bool
	}{{"begun\n", false}, {"ended 1", false}, {"2\n", true}} {
		if _, err := unix.Write(pipe[1], []byte(word.text)); err != nil {
			t.Fatal(err)
		}
		if ch.listen(); ch.over != word.over {
			t.Errorf("after %q: %v", word.text, ch.over)
		}
	}
	_ = unix.Close(pipe[1])
	if ch.listen(); ch.code != 12 || !ch.mute {
		t.Errorf("%+v", ch)
	}
}
