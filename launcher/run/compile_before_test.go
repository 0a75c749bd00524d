package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// What is compiled before anybody launches it is found by its tenant's launches, and
// a wait for the compiler is told from its beginning to its end.
func TestCompiledBeforeItIsLaunched(t *testing.T) {
	dir, begun, ended := t.TempDir()+"/cache", 0, 0
	slow := func() func() { begun++; return func() { ended++ } }
	c := Compilation{
		Agent: "agent", Module: large(), Tenant: "default", CacheDir: dir, Compiler: os.Executable,
		Slow: slow,
	}
	for range 2 {
		if uncached, err := Compile(t.Context(), c); uncached != nil || err != nil {
			t.Fatal(uncached, err)
		}
	}
	if begun != 2 || ended != 2 {
		t.Errorf("%d waits began, %d ended", begun, ended)
	}
	// whose code is its own, in the place of what is there
	for _, tenant := range []string{"default", "default", "another"} {
		s := specOf(t, audit.NewMemory())
		s.Tenant, s.Module, s.CacheDir, s.Compiler = tenant, large(), dir, os.Executable
		if r := Launch(t.Context(), s); r.Outcome != OK || r.Usage.Compiled != (tenant == "another") {
			t.Errorf("%s: %s %s, compiled anew: %v", tenant, r.Outcome, r.Message, r.Usage.Compiled)
		}
	}
	file := dir + "/file"
	must(t, os.WriteFile(file, nil, 0o600))
	c.CacheDir, c.Slow = file, nil
	if uncached, err := Compile(t.Context(), c); uncached == nil || err != nil {
		t.Errorf("a cache that is no folder: %v, %v", uncached, err)
	}
}

// What a launch would refuse is not compiled, and the exit status says whether the
// module, the compiler or the operator is the reason.
func TestWhatCannotBeCompiledSaysWhy(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	none := func() (string, error) { return "", errors.New("no program") }
	for name, c := range map[string]struct {
		ctx      context.Context
		module   []byte
		compiler func() (string, error)
		status   int
	}{
		"no module":   {t.Context(), []byte("no module"), os.Executable, StatusInput},
		"no compiler": {t.Context(), large(), none, StatusUnavailable},
		"interrupted": {ended, large(), os.Executable, StatusCancelled},
	} {
		_, err := Compile(c.ctx, Compilation{Agent: "agent", Module: c.module, Compiler: c.compiler})
		if err == nil || CompileStatus(err) != c.status {
			t.Errorf("%s: status %d: %v", name, CompileStatus(err), err)
		}
	}
	if got := CompileStatus(fmt.Errorf("compiling: %w", guest.ErrCompiler)); got != StatusUnavailable {
		t.Errorf("status %d", got)
	}
}

// However a launch ends, it gives back the compiled module that it shares with
// others: what nobody uses can be freed.
func TestALaunchGivesItsModuleBack(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Spec)
		outcome Outcome
	}{
		"runs": {func(*Spec) {}, OK},
		"no journal": {func(s *Spec) {
			s.OpenJournal = func(audit.Head) (Journal, error) {
				return nil, errors.New("none")
			}
		}, AuditFailed},
		"no input": {func(s *Spec) {
			s.ReadInput = func(context.Context) ([]byte, error) {
				return nil, errors.New("none")
			}
		}, Refused},
		"not linked":     {func(s *Spec) { s.Args = []string{"a\x00b"} }, Refused},
		"no first place": {naming("granted"), AuditFailed},
	} {
		lib := guest.NewLibrary(1) // keeps nothing that nobody uses
		s := specOf(t, audit.NewMemory(), "kb:read:notes")
		compiled := make(chan struct{})
		s.Library, s.Slow = lib, func() func() { return func() { close(compiled) } }
		c.change(s)
		if r := Launch(t.Context(), s); r.Outcome != c.outcome {
			t.Errorf("%s: %s %s", name, r.Outcome, r.Message)
		}
		<-compiled
		if bytes, modules := lib.Held(); bytes != 0 || modules != 0 {
			t.Errorf("%s: %d modules of %d bytes are still in use", name, modules, bytes)
		}
		must(t, lib.Close())
	}
}
