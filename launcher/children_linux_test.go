package launcher_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/model/modeltest"
)

// embeds is a program that launches bundles and prints how each ended.
const embeds = `package main

import (
	"context"
	"fmt"
	"os"

	"runloop.dev/rlp/launcher"
)

func main() {
	if os.Getenv("WITHOUT_MAIN") == "" { // no child has the variable
		launcher.Main()
	}
	l, err := launcher.Open(launcher.Options{Home: os.Args[1], Helper: os.Args[2], Env: os.Environ()})
	if err != nil {
		fmt.Println("not opened:", err)
		return
	}
	for _, bundle := range os.Args[3:] {
		r, err := l.Launch(context.Background(), launcher.Request{Bundle: bundle})
		if err != nil {
			fmt.Println("not launched:", err)
			continue
		}
		fmt.Printf("%s %d %q %s\n", r.Outcome, r.ExitCode, r.Stdout, r.Message)
	}
}
`

// built is the program rlp.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rlp")
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "../cmd/rlp")
	c.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it: what was compiled for that is not compiled again
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return path
}

// What a launch does in processes of its own (compile, start a program in a lane, ask
// a provider of models) is done by the embedding program where it calls Main, by rlp
// where it names that, and by nobody else: never by the embedding process itself.
func TestWhoIsTheChildrenOfAnEmbeddingProgram(t *testing.T) {
	work := t.TempDir()
	server := modeltest.Start(t, "openai")
	settings := "[security.secrets]\nprovider = \"env\"\n[exec]\nlane = \"ns\"\n" +
		"[[model.providers]]\nid = \"o\"\nkind = \"openai\"\nbase_url = \"" + server.URL +
		"\"\nsecret_id = \"runloop/models/key\"\n"
	large := "\x00" + str(str("nothing")+strings.Repeat("x", 64<<10)) // beyond what is compiled without a child
	asks, err := agentIn(work, "asks", calling("runloop_v1", "model_complete",
		`{"model":"o:gpt","messages":[{"role":"user","content":"by a provider"}]}`)+large, "model = true")
	if err != nil {
		t.Fatal(err)
	}
	starts, err := agentIn(work, "starts", calling("runloop_v1", "exec_run", `{"argv":["/bin/echo","by a lane"]}`, ""),
		"exec = true")
	if err != nil {
		t.Fatal(err)
	}
	program, said, err := outside(t, embeds)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	rlp := built(t)
	const launched = "ok 0 "
	for _, c := range []struct {
		name   string
		main   bool
		helper string
		home   string
		want   []string
		asked  int // how often the provider is
	}{
		{"main", true, "", "home-of-main", []string{launched, "by a lane", "by a provider"}, 1},
		{"helper", false, rlp, "home-of-helper", []string{launched, "by a lane", "by a provider"}, 1},
		{"neither", false, "", "home-of-helper", []string{"not opened: launches need child processes"}, 0},
		{"no helper", false, "/bin/false", "home-of-helper", []string{"unsupported 78", "exit 29"}, 0},
		{"no compiler", false, "/bin/false", "home-of-nobody", []string{"unsupported 78", "compiler"}, 0},
	} {
		home := filepath.Join(work, c.home)
		write(t, filepath.Join(home, "config.toml"), settings)
		before := server.Calls("gpt")
		run := exec.Command(program, home, c.helper, starts, asks)
		run.Env = append(os.Environ(), "RLP_SECRET_default_0models_0key="+modeltest.Key)
		if !c.main {
			run.Env = append(run.Env, "WITHOUT_MAIN=1")
		}
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, out)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: %s\nwant %s", c.name, out, want)
			}
		}
		if c.want[0] != launched && strings.Contains(string(out), "by a") {
			t.Errorf("%s: something was done: %s", c.name, out)
		}
		if asked := server.Calls("gpt") - before; asked != c.asked {
			t.Errorf("%s: the provider was asked %d times: %s", c.name, asked, out)
		}
	}
}
