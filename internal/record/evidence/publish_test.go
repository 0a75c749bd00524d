package evidence

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ledger is what a log keeps, for a Publisher to ask for.
func (f *forest) ledger(sizes ...int) func(uint64) ([]Stored, error) {
	return func(above uint64) ([]Stored, error) {
		var list []Stored
		for _, n := range sizes {
			if uint64(n) > above {
				list = append(list, Stored{uint64(n), f.checkpoint(n)})
			}
		}
		if above == 0 && len(list) > 0 {
			list = list[len(list)-1:]
		}
		return list, nil
	}
}

func publisher(t *testing.T, f *forest, dir string, post Poster, names ...string) *Publisher {
	t.Helper()
	p := &Publisher{Dir: dir, Origin: f.key.Public().Origin(), Now: time.Now}
	for _, name := range names {
		s, err := ParseSink(name, post)
		if err != nil {
			t.Fatal(err)
		}
		p.Sinks = append(p.Sinks, s)
	}
	return p
}

// sizes are the sizes of the checkpoints in a file, each signed by the log.
func (f *forest) sizes(text []byte) []uint64 {
	f.t.Helper()
	var list []uint64
	for _, n := range SplitNotes(text) {
		if n.Torn != "" {
			f.t.Logf("line %d: %s", n.Line, n.Torn)
			continue
		}
		c, err := f.key.Public().Open(n.Text)
		if err != nil {
			f.t.Error(err)
		}
		list = append(list, c.Size)
	}
	return list
}

func wantSizes(t *testing.T, what string, got []uint64, want ...uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %v, want %v", what, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s has %v, want %v", what, got, want)
		}
	}
}

// A sink that fails is told all of it the next time; the others are not kept
// from it.
func TestPublishRetries(t *testing.T) {
	f, dir := grow(t, 9), t.TempDir()
	file := filepath.Join(t.TempDir(), "out")
	var posted bytes.Buffer
	down := errors.New("refused")
	var failing error
	post := func(_ context.Context, _ string, body []byte) error {
		if failing == nil {
			posted.Write(append(body, '\n'))
		}
		return failing
	}
	p := publisher(t, f, dir, post, "file:"+file, "https://witness.example/rlp")
	publish := func(sizes ...int) []Told {
		t.Helper()
		told, err := p.Publish(t.Context(), f.ledger(sizes...))
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	publish(2)
	failing = down
	told := publish(2, 4)
	if told[0].Err != nil || told[0].Size != 4 || !errors.Is(told[1].Err, down) || told[1].Size != 2 {
		t.Fatalf("while one is down: %+v", told)
	}
	publish(2, 4, 6)
	failing = nil
	publish(2, 4, 6, 9)
	told = publish(2, 4, 6, 9) // nothing new
	if told[1].Size != 9 || told[1].Err != nil {
		t.Errorf("%+v", told)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantSizes(t, "the file", f.sizes(text), 2, 4, 6, 9)
	wantSizes(t, "the server", f.sizes(posted.Bytes()), 2, 4, 6, 9)

	// Another log in the same place starts anew.
	g := grow(t, 3)
	q := publisher(t, g, dir, post, "file:"+file)
	if list, err := q.Told(); err != nil || list[0].Size != 0 {
		t.Errorf("another log: %+v, %v", list, err)
	}
}

// A sink that does not answer keeps no other from being told, wherever it stands.
func TestPublishBesideSilent(t *testing.T) {
	f := grow(t, 2)
	ctx, giveUp := context.WithTimeout(t.Context(), 10*time.Second)
	defer giveUp()
	post := func(ctx context.Context, url string, _ []byte) error {
		if url == "https://silent.example/" {
			<-ctx.Done() // until the other one was told
			return ctx.Err()
		}
		defer giveUp()
		return ctx.Err()
	}
	p := publisher(t, f, t.TempDir(), post, "https://silent.example/", "https://witness.example/")
	told, err := p.Publish(ctx, f.ledger(2))
	if err != nil || len(told) != 2 || told[0].Err == nil || told[0].Size != 0 || told[1].Err != nil || told[1].Size != 2 {
		t.Errorf("%+v, %v", told, err)
	}
}

// What a crash left half written in a file does no harm to what follows.
func TestPublishBehindTorn(t *testing.T) {
	f := grow(t, 5)
	path := filepath.Join(t.TempDir(), "out")
	torn := append(f.checkpoint(2), '\n')
	torn = append(torn, f.checkpoint(3)[:90]...)
	if err := os.WriteFile(path, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	p := publisher(t, f, t.TempDir(), nil, "file:"+path)
	if told, err := p.Publish(t.Context(), f.ledger(5)); err != nil || told[0].Err != nil {
		t.Fatal(told, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantSizes(t, "the file", f.sizes(text), 2, 5)
}

// Checkpoints that were appended as they are printed, without an empty line, are
// each read; before and after one that was torn, too.
func TestSplitAppended(t *testing.T) {
	f := grow(t, 5)
	text := append(append(f.checkpoint(2), f.checkpoint(3)...), f.checkpoint(4)[:60]...)
	text = append(append(append(text, "\n\n"...), f.checkpoint(4)...), f.checkpoint(5)...)
	wantSizes(t, "the file", f.sizes(text), 2, 3, 4, 5)
}

// A sink that is no place to append to is not waited for.
func TestPublishToNoFile(t *testing.T) {
	f, dir := grow(t, 1), t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "x"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"file:" + dir, "file:" + dir + "/none/out", "file:" + dir + "/link", "file:/dev/null",
		"git:" + dir,
	} {
		p := publisher(t, f, dir, nil, name)
		if told, err := p.Publish(t.Context(), f.ledger(1)); err != nil || told[0].Err == nil ||
			!strings.Contains(told[0].Err.Error(), name) {
			t.Errorf("%s: %+v, %v", name, told, err)
		}
	}
	for _, name := range []string{"file:out", "file:/a/../b", "git:", "ftp://x", "nothing"} {
		if _, err := ParseSink(name, nil); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// One publication of a log goes on at a time.
func TestPublishLocked(t *testing.T) {
	f, dir := grow(t, 1), t.TempDir()
	p := publisher(t, f, dir, nil, "file:"+dir+"/out")
	unlock, err := p.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Publish(over, f.ledger(1)); err == nil {
		t.Error("two at once")
	}
	unlock()
	if _, err := p.Publish(t.Context(), f.ledger(1)); err != nil {
		t.Errorf("control: %v", err)
	}
}

// gitCommand runs git as the operator would.
func gitCommand(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=o",
		"GIT_AUTHOR_EMAIL=o@x", "GIT_COMMITTER_NAME=o", "GIT_COMMITTER_EMAIL=o@x")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// Each publication is a commit whose message is the checkpoints, and what git
// prints of them is a file of checkpoints.
func TestPublishToGit(t *testing.T) {
	f, repo := grow(t, 9), t.TempDir()
	gitCommand(t, repo, "init", "--quiet", "--bare")
	p := publisher(t, f, t.TempDir(), nil, "git:"+repo)
	for _, sizes := range [][]int{{2}, {2, 4}, {2, 4, 6, 9}} {
		if told, err := p.Publish(t.Context(), f.ledger(sizes...)); err != nil || told[0].Err != nil {
			t.Fatal(told, err)
		}
	}
	branch := strings.TrimPrefix(f.key.Public().Origin(), "runloop.dev/")
	wantSizes(t, "the branch", f.sizes(gitCommand(t, repo, "log", "--reverse", "--format=%B", branch)), 2, 4, 6, 9)
	if n := strings.TrimSpace(string(gitCommand(t, repo, "rev-list", "--count", branch))); n != "3" {
		t.Errorf("%s commits, want 3", n)
	}
}

// Nothing in the repository is executed: neither hooks nor what its settings
// name. The control is git itself, which executes both.
func TestPublishToGitRunsNothing(t *testing.T) {
	f, repo, out := grow(t, 2), t.TempDir(), t.TempDir()
	gitCommand(t, repo, "init", "--quiet")
	trap := filepath.Join(out, "trap")
	if err := os.WriteFile(trap, []byte("#!/bin/sh\necho sprung >>"+out+"/sprung\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(repo, ".git", "hooks")
	for _, hook := range []string{
		"reference-transaction", "pre-commit", "post-commit", "commit-msg", "prepare-commit-msg",
		"post-update", "update",
	} {
		if err := os.MkdirAll(hooks, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(trap, filepath.Join(hooks, hook)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass",
		"gpg.program", "filter.x.clean", "filter.x.smudge",
	} {
		gitCommand(t, repo, "config", name, trap)
	}
	gitCommand(t, repo, "config", "core.hooksPath", hooks)
	gitCommand(t, repo, "config", "commit.gpgSign", "true")
	sprung := func() bool { _, err := os.Stat(filepath.Join(out, "sprung")); return err == nil }
	if err := os.Remove(filepath.Join(out, "sprung")); err != nil && sprung() {
		t.Fatal(err)
	}
	p := publisher(t, f, t.TempDir(), nil, "git:"+repo)
	if told, err := p.Publish(t.Context(), f.ledger(2)); err != nil || told[0].Err != nil {
		t.Fatal(told, err)
	}
	if sprung() {
		t.Error("publishing executed what the repository names")
	}
	branch := "refs/heads/" + strings.TrimPrefix(f.key.Public().Origin(), "runloop.dev/")
	head := strings.TrimSpace(string(gitCommand(t, repo, "-c", "core.hooksPath=/dev/null", "rev-parse", branch)))
	gitCommand(t, repo, "update-ref", "refs/heads/control", head)
	if !sprung() {
		t.Error("control: git itself executes nothing of it")
	}
}

// A repository that everybody can write to is no place for evidence.
func TestPublishToOpenGit(t *testing.T) {
	f, repo := grow(t, 2), t.TempDir()
	gitCommand(t, repo, "init", "--quiet", "--bare")
	if err := os.Chmod(filepath.Join(repo, "config"), 0o666); err != nil {
		t.Fatal(err)
	}
	p := publisher(t, f, t.TempDir(), nil, "git:"+repo)
	if told, err := p.Publish(t.Context(), f.ledger(2)); err != nil || told[0].Err == nil ||
		!strings.Contains(told[0].Err.Error(), "everybody") {
		t.Errorf("%+v, %v", told, err)
	}
}
