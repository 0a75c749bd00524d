package meter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/engine/meter"
)

// engineSource is where the engine's own tests lie, with the specification's.
func engineSource(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func specFiles(t testing.TB, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(engineSource(t), "internal/integration_test/spectest", pattern))
	if err != nil || len(list) == 0 {
		t.Fatalf("%d files %s: %v", len(list), pattern, err)
	}
	return list
}

// compiles reports whether the engine takes wasm.
func compiles(rt wazero.Runtime, wasm []byte) error {
	c, err := rt.CompileModule(context.Background(), wasm)
	if err == nil {
		_ = c.Close(context.Background())
	}
	return err
}

// sameValidity fails unless wasm rewritten is valid as wasm is. What is valid
// may be refused, for a reason that is not its form.
func sameValidity(t testing.TB, rt wazero.Runtime, wasm []byte) (valid, refused bool) {
	t.Helper()
	before := compiles(rt, wasm)
	out, err := meter.Rewrite(wasm, meter.Option{})
	if err != nil {
		if before == nil && errors.Is(err, meter.ErrMalformed) {
			t.Errorf("valid, but refused: %v", err)
		}
		return before == nil, true
	}
	after := compiles(rt, out)
	if (before == nil) != (after == nil) {
		t.Errorf("original: %v\nrewritten: %v", before, after)
	}
	return before == nil, false
}

// Every binary of the specification's tests is valid after it was rewritten
// if and only if it was before.
func TestSpecValidity(t *testing.T) {
	rt := newRuntime(t, features(wazero.NewRuntimeConfigInterpreter()))
	for _, suite := range []string{
		"v1", "v2", "tail-call", "threads", "exception-handling", "typed-function-references",
		"extended-const",
	} {
		valid, invalid, refused := 0, 0, 0
		for _, file := range specFiles(t, suite+"/testdata/*.wasm") {
			wasm, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ok, no := sameValidity(t, rt, wasm)
			switch {
			case t.Failed():
				t.Fatalf("it was %s", file)
			case ok && no:
				refused++
				t.Logf("%s refused", filepath.Base(file))
			case ok:
				valid++
			default:
				invalid++
			}
		}
		t.Logf("%s: %d valid, %d invalid, %d valid but refused", suite, valid, invalid, refused)
	}
}

// command is one step of a test of the specification.
type command struct {
	Type     string `json:"type"`
	Line     int    `json:"line"`
	Name     string `json:"name"`
	Filename string `json:"filename"`
	As       string `json:"as"`
	Action   struct {
		Type   string  `json:"type"`
		Field  string  `json:"field"`
		Module string  `json:"module"`
		Args   []value `json:"args"`
	} `json:"action"`
}

type value struct {
	Type  string `json:"type"`
	Lanes string `json:"lane_type"`
	Value any    `json:"value"`
}

// words is the value as the engine takes it.
func (v value) words(t testing.TB) []uint64 {
	t.Helper()
	if v.Type == "v128" {
		var out [2]uint64
		lanes := v.Value.([]any)
		width := 128 / len(lanes)
		for i, lane := range lanes {
			out[i*width/64] |= number(lane.(string), width) << (i * width % 64)
		}
		return out[:]
	}
	text, _ := v.Value.(string)
	switch {
	case text == "" || text == "null":
		return []uint64{0}
	case v.Type == "externref":
		return []uint64{number(text, 64) + 1}
	case strings.HasSuffix(v.Type, "32"):
		return []uint64{number(text, 32)}
	}
	return []uint64{number(text, 64)}
}

func number(text string, width int) uint64 {
	mask := uint64(math.MaxUint64) >> (64 - width)
	if strings.HasPrefix(text, "nan") {
		if width == 32 {
			return uint64(math.Float32bits(float32(math.NaN())))
		}
		return math.Float64bits(math.NaN())
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n & mask
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return uint64(n) & mask
}

// stage is a runtime in which a test of the specification is played.
type stage struct {
	rt      wazero.Runtime
	modules map[string]api.Module
	last    api.Module
	meter   bool
}

func newStage(t *testing.T, cfg wazero.RuntimeConfig, spectest []byte, metered bool) *stage {
	s := &stage{rt: wazero.NewRuntimeWithConfig(t.Context(), cfg), modules: map[string]api.Module{}, meter: metered}
	if metered {
		serve(t, s.rt, meter.NewFuel(plenty, 1))
	}
	if _, err := s.rt.InstantiateWithConfig(t.Context(), spectest, wazero.NewModuleConfig()); err != nil {
		t.Fatal(err)
	}
	return s
}

// load brings in a module under a name of its own, or none.
func (s *stage) load(wasm []byte, name string) error {
	if s.meter {
		var err error
		if wasm, err = meter.Rewrite(wasm, meter.Option{}); err != nil {
			return err
		}
	}
	mod, err := begun(s.rt.InstantiateWithConfig(context.Background(), wasm,
		wazero.NewModuleConfig().WithName(name).WithStartFunctions()))
	if err != nil {
		return err
	}
	s.last = mod
	if name != "" {
		s.modules[name] = mod
	}
	return nil
}

func (s *stage) act(t *testing.T, c command) string {
	mod := s.last
	if c.Action.Module != "" {
		mod = s.modules[c.Action.Module]
	}
	if mod == nil {
		return "no module"
	}
	if c.Action.Type == "get" {
		return fmt.Sprint(mod.ExportedGlobal(c.Action.Field).Get())
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.words(t)...)
	}
	f := mod.ExportedFunction(c.Action.Field)
	if f == nil {
		return "no function"
	}
	results, err := f.Call(context.Background(), args...)
	for i, typ := range f.Definition().ResultTypes() {
		if typ == 0x70 && err == nil { // a function's address
			results[i] = min(results[i], 1)
		}
	}
	return fmt.Sprint(results, outcome(err))
}

// Every test of the specification gives the same, step by step, whether its
// modules are rewritten or not.
func TestSpecBehaviour(t *testing.T) {
	spectest, err := os.ReadFile(filepath.Join(engineSource(t),
		"internal/integration_test/spectest/testdata/spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range engines() {
		steps := 0
		for _, file := range specFiles(t, "v2/testdata/"+[]string{"*", "b*"}[size(0, 1, 0)]+".json") {
			a, b := newStage(t, cfg, spectest, false), newStage(t, cfg, spectest, true)
			steps += play(t, file, a, b)
			_, _ = a.rt.Close(context.Background()), b.rt.Close(context.Background())
		}
		t.Logf("%s: %d steps", name, steps)
		if steps < size(10_000, 500, 10_000) {
			t.Errorf("%s: only %d steps", name, steps)
		}
	}
}

// play takes two stages through one file and compares.
func play(t *testing.T, file string, a, b *stage) int {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var script struct{ Commands []command }
	if err := json.Unmarshal(raw, &script); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for i, c := range script.Commands {
		var x, y string
		switch c.Type {
		case "module", "assert_uninstantiable", "assert_unlinkable":
			wasm, err := os.ReadFile(filepath.Join(filepath.Dir(file), c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			name := c.Name
			if i+1 < len(script.Commands) && script.Commands[i+1].Type == "register" {
				name = script.Commands[i+1].As
			}
			x, y = outcome(a.load(wasm, name)), outcome(b.load(wasm, name))
			if c.Name != "" {
				a.modules[c.Name], b.modules[c.Name] = a.last, b.last
			}
		case "action", "assert_return", "assert_trap", "assert_exhaustion":
			x, y = a.act(t, c), b.act(t, c)
		default:
			continue
		}
		steps++
		if x != y && !slices.Contains([]string{"assert_exhaustion"}, c.Type) {
			t.Errorf("%s:%d %s %s: %q, rewritten %q", filepath.Base(file), c.Line, c.Type, c.Action.Field, x, y)
		}
	}
	return steps
}
