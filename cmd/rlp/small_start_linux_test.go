package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// linkedModules are all that the small program is made of beside this module and
// Go's own: what is linked is initialized before main, used or not, and each adds
// to every launch. What the whole program alone needs belongs behind !slim.
var linkedModules = []string{
	"github.com/bits-and-blooms/bitset", "github.com/fxamacker/cbor/v2", "github.com/google/uuid",
	"github.com/pelletier/go-toml/v2", "github.com/spf13/pflag", "github.com/tetratelabs/wazero", "github.com/x448/float16",
	"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
}

// heavyPackages are those of Go and of the modules above that must stay out.
var heavyPackages = []string{
	"net/http", "crypto/tls", "crypto/x509", "text/template", "regexp", "golang.org/x/text/language", "golang.org/x/text/cases",
}

// Bounds of what initializes itself before main in the small program, in all
// packages together. Allocations are counted, for a time is another on each machine;
// GODEBUG=inittrace=1 shows both. It is 370 and 75,000, of which the engine alone has
// 158 and 57,000; with HTTP, TLS and cobra it was 604 and 116,000.
const (
	mostInitAllocs = 420
	mostInitBytes  = 90_000
)

func TestSmallProgramStartsWithLittle(t *testing.T) {
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-tags", "slim", "-o", small, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, text)
	}
	info, err := buildinfo.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !slices.Contains(linkedModules, m.Path) {
			t.Errorf("the small program links %s", m.Path)
		}
	}
	list, err := exec.Command("go", "list", "-tags", "slim", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(list))
	for _, p := range heavyPackages {
		if slices.Contains(packages, p) {
			t.Errorf("the small program links %s", p)
		}
	}
	if !slices.Contains(packages, "github.com/tetratelabs/wazero") {
		t.Error("control: the engine is not among its packages")
	}
	order, allocs, bytes := initTrace(t, dir, small)
	if allocs > mostInitAllocs || bytes > mostInitBytes {
		t.Errorf("before main it makes %d allocations of %d bytes; at most %d and %d", allocs, bytes, mostInitAllocs, mostInitBytes)
	}
	asks := slices.Index(order, "runloop.dev/rlp/internal/early")
	for _, late := range []string{"github.com/tetratelabs/wazero/internal/engine/wazevo", "net", "runloop.dev/rlp/caps", "runloop.dev/rlp/hostcalls"} {
		if i := slices.Index(order, late); asks < 0 || i < asks {
			t.Errorf("%s is initialized as number %d, before the resident helper is asked (%d)", late, i, asks)
		}
	}
}

// initTrace is what a program initializes before main, and what it allocates in
// all packages together.
func initTrace(t *testing.T, home, program string) (order []string, allocs, bytes int) {
	t.Helper()
	cmd := exec.Command(program, "launch", filepath.Join(home, "none"))
	cmd.Env = []string{"HOME=" + home, "GODEBUG=inittrace=1"}
	text, _ := cmd.CombinedOutput()
	lines := regexp.MustCompile(`(?m)^init (\S+) @.* ms clock, (\d+) bytes, (\d+) allocs$`).FindAllSubmatch(text, -1)
	for _, l := range lines {
		b, err := strconv.Atoi(string(l[2]))
		a, err2 := strconv.Atoi(string(l[3]))
		if err != nil || err2 != nil {
			t.Fatalf("not a trace: %s", l[0])
		}
		order, allocs, bytes = append(order, string(l[1])), allocs+a, bytes+b
	}
	if len(lines) < 20 || cmd.ProcessState.ExitCode() != 65 {
		t.Fatalf("no trace, exit %v: %s", cmd.ProcessState, text)
	}
	return order, allocs, bytes
}
