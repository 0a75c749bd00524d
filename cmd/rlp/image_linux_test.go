package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/launcher/program"
)

// An engine is podman with storage of its own, so that a test leaves nothing.
type engine struct {
	program string
	dir     string
}

func (e engine) command(args ...string) *exec.Cmd {
	storage := []string{
		"--remote=false", "--log-level", "error", "--events-backend", "none", "--cgroup-manager", "cgroupfs",
		"--root", e.dir + "/s", "--runroot", e.dir + "/r", "--tmpdir", e.dir + "/t", "--storage-driver", "vfs",
	}
	return exec.Command(e.program, append(storage, args...)...)
}

func (e engine) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("podman %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// confined is how docs/install.md says that the image is run, where a sandbox bounds
// what limits may be set.
var confined = []string{
	"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp", "--pids-limit", "512",
	"--network", "none", "--no-healthcheck", "--ulimit", "nofile=8192:8192", "--ulimit", "nproc=4096:4096",
}

// image builds the image of a release that has this tree's program.
func image(t *testing.T) (engine, bool) {
	t.Helper()
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Log("podman is not installed: nobody builds the image here")
		return engine{}, false
	}
	e := engine{podman, t.TempDir()}
	release := t.TempDir()
	rlp := builtProgram(t)
	binary, err := os.ReadFile(rlp)
	if err != nil {
		t.Fatal(err)
	}
	confine, err := os.ReadFile(filepath.Join(filepath.Dir(rlp), program.ConfineFile))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../internal/dev/dist/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	doc := filepath.Join(release, "share/doc/rlp")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(release, "bin"), 0o755), os.MkdirAll(filepath.Join(doc, "image/var/lib/rlp"), 0o755),
		os.Mkdir(filepath.Join(doc, "image/tmp"), 0o755),
		os.Chmod(filepath.Join(doc, "image/var/lib/rlp"), 0o700),
		os.WriteFile(filepath.Join(release, "bin/rlp"), binary, 0o755),
		os.WriteFile(filepath.Join(release, "bin", program.ConfineFile), confine, 0o755),
		os.WriteFile(filepath.Join(doc, "Dockerfile"), file, 0o644),
	); err != nil {
		t.Fatal(err)
	}
	e.do(t, "build", "--format", "docker", "--layers=false", "--network", "none", "--tag", "rlp", "--file",
		filepath.Join(doc, "Dockerfile"), release)
	return e, true
}

// The image serves as nobody, from a file system that cannot be written to, with a
// home that may hold no programs, and ends when it is asked to.
func TestImage(t *testing.T) {
	t.Parallel()
	e, ok := image(t)
	if !ok {
		return
	}
	run := append([]string{"run", "--detach", "--name", "rlp", "--volume", "home:/var/lib/rlp:noexec"}, confined...)
	e.do(t, append(run, "rlp")...)
	t.Cleanup(func() { e.do(t, "rm", "--force", "--volumes", "--time", "0", "rlp") })
	if user := strings.TrimSpace(e.do(t, "image", "inspect", "--format", "{{.User}} {{.HealthCheck.Test}}",
		"rlp")); user != "65532:65532 [CMD /bin/rlp serve --check]" {
		t.Errorf("user and health check: %s", user)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := e.command("exec", "rlp", "/bin/rlp", "serve", "--check").CombinedOutput()
		if err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never was ready: %v %s\n%s", err, out, e.do(t, "logs", "rlp"))
		}
	}
	if out, err := e.command("exec", "rlp", "/bin/rlp", "serve", "--check", "--home",
		"/tmp/none").CombinedOutput(); err == nil {
		t.Errorf("control: what nobody serves is ready: %s", out)
	}
	e.do(t, "exec", "rlp", "/bin/rlp", "audit", "verify")
	if out, err := e.command("exec", "rlp", "/bin/rlp", "man", "/manual").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "read-only") {
		t.Errorf("it wrote beside its home: %v %s", err, out)
	}
	e.do(t, "stop", "--time", "30", "rlp")
	if code := strings.TrimSpace(e.do(t, "inspect", "--format", "{{.State.ExitCode}}", "rlp")); code != "0" {
		t.Errorf("it ended with %s: %s", code, e.do(t, "logs", "rlp"))
	}
}
