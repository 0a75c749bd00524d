package compose

import (
	"bytes"
	"log"
	"strings"
	"testing"
)

// What a library says before it ends the process is heard; what net/http prints is not.
func TestLastWordsAreHeard(t *testing.T) {
	var said bytes.Buffer
	l := log.New(lastWords{&said}, "", 0)
	l.Printf("http: a header from \x1b[31m outside")
	if said.Len() > 0 {
		t.Fatalf("said %q", said.String())
	}
	func() {
		defer func() { _ = recover() }()
		l.Panicf("cannot open \x1b %s", "table 7")
	}()
	if got := said.String(); !strings.Contains(got, "a library ended this process: cannot open") ||
		!strings.Contains(got, "table 7") || strings.Contains(got, "\x1b") {
		t.Errorf("said %q", got)
	}
}
