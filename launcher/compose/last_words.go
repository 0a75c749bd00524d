package compose

import (
	"io"
	"runtime"
	"strings"

	"runloop.dev/rlp/internal/base/printable"
)

// lastWords passes on what the log package is told by whoever then ends the
// process, and nothing else: what net/http prints by itself has parts in it that
// servers said.
type lastWords struct{ to io.Writer }

func (w lastWords) Write(p []byte) (int, error) {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		f, more := frames.Next()
		if _, name, in := strings.Cut(f.Function, "log."); in && endsProcess(name) {
			return w.to.Write([]byte("rlp: a library ended this process: " + printable.Lines(string(p)) + "\n"))
		}
		if !more {
			return len(p), nil
		}
	}
}

// endsProcess reports whether a function of the log package does not return.
func endsProcess(name string) bool {
	name = strings.TrimPrefix(name, "(*Logger).")
	return strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic")
}
