package container

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/lane"
)

// recorder is an engine that writes down what it is asked, and what the program
// would have been given.
const recorder = `#!/bin/sh
dir=${0%/*}
case " $* " in *" run "*) ;; *) exit 0 ;; esac
for a; do printf '%s\n' "$a"; done >$dir/line
env | sort >$dir/env
cat /proc/self/fd/3 >$dir/program-env
cat
echo err >&2
exit 3
`

// recorded runs a program in a lane whose engine is the recorder.
func recorded(t *testing.T, engine string, own Config, c *lane.Command) (line []string, env, programEnv string) {
	t.Helper()
	dir := t.TempDir()
	own.Engine = filepath.Join(dir, engine)
	put(t, own.Engine, recorder)
	if err := os.Chmod(own.Engine, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := own.Lane(lane.Config{
		Work: filepath.Join(dir, "agent", "run"), ID: "0193-abcdef",
		Bounds: lane.Bounds{Memory: 1 << 28},
	})
	if err != nil {
		t.Fatal(err)
	}
	k := l.(*container)
	k.engine.rootless = false
	r, err := k.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != 3 || string(r.Stdout.Data) != "stdin" || string(r.Stderr.Data) != "err\n" {
		t.Errorf("%+v", r)
	}
	text := read(t, filepath.Join(dir, "line"))
	text = strings.NewReplacer(k.state.dir, "STATE", dir, "DIR").Replace(text)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), read(t, filepath.Join(dir, "env")),
		read(t, filepath.Join(dir, "program-env"))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The command line of docker, to the word. Secrets are not in it, and the client
// does not get what programs are given.
//
//rlp:holds K49 K64
func TestTheLineOfDocker(t *testing.T) {
	ro := openDir(t, 0o755)
	line, env, programEnv := recorded(t, "docker", Config{
		Image: "docker.io/library/alpine:3", AppArmor: "rlp", CPUs: 1.5, Nofile: [2]int64{256, 512},
		Tmpfs: []string{"/tmp", "/var/tmp:exec,size=1m"},
		Env:   []string{"HOME=/root", "SECRET=operators", "DOCKER_HOST=tcp://10.0.0.1:2375", "DOCKER_CONTEXT=far"},
	}, &lane.Command{
		Program: "/bin/echo", Argv: []string{"/bin/echo", "--privileged", "-v/:/host"}, Env: []string{
			"TOKEN=t0ps3cret",
			"DOCKER_HOST=unix:///x",
		},
		Stdin: []byte("stdin"), Timeout: 5 * time.Second, MaxOutput: 1 << 10,
		Folders: []lane.Folder{{Path: ro, Access: lane.ReadOnly}},
	})
	want := strings.Fields(`--config STATE/client --context default run --rm --name rlp-0193-abcdef --label dev.runloop.rlp=0193-abcdef
		--pull never --network none --sig-proxy=false --no-healthcheck --memory 268435456 --memory-swap 268435456 --pids-limit 256
		--user 65532:65532 --read-only --cap-drop ALL --security-opt no-new-privileges --security-opt seccomp=STATE/seccomp.json
		--ulimit nofile=256:512 --ulimit nproc=4096:4096 --ulimit core=1:1 --ipc private --cgroupns private --hostname rlp --log-driver none
		--env-file /proc/self/fd/3 --workdir DIR/agent/run --security-opt apparmor=rlp --cpus 1.5 --interactive
		--tmpfs /tmp:rw,noexec,nosuid,nodev,size=64m,mode=1777 --tmpfs /var/tmp:exec,size=1m,rw,nosuid,nodev,mode=1777
		--mount type=bind,src=DIR/agent/run,dst=DIR/agent/run,bind-recursive=disabled
		--mount type=bind,src=RO,dst=RO,readonly,bind-recursive=disabled
		--entrypoint /bin/echo docker.io/library/alpine:3 --privileged -v/:/host`)
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "RO", ro)
	}
	if !slices.Equal(line, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(line, " "), strings.Join(want, " "))
	}
	if programEnv != "TOKEN=t0ps3cret\nDOCKER_HOST=unix:///x\n" || strings.Contains(strings.Join(line, " "), "t0ps3cret") {
		t.Errorf("the program gets %q", programEnv)
	}
	if strings.Contains(env, "t0ps3cret") || strings.Contains(env, "SECRET") || strings.Contains(env, "DOCKER") ||
		!strings.Contains(env, "HOME=/root\n") {
		t.Errorf("the client gets %q", env)
	}
}

// What is true of every line, whatever the operator says.
//
//rlp:holds K49 K65
func TestTheLineOfPodman(t *testing.T) {
	for _, own := range []Config{{}, {Image: "busybox"}, {
		User: "1:2", Tmpfs: []string{},
		Env: []string{"CONTAINERS_CONF=/x", "CONTAINER_HOST=tcp://h"},
	}} {
		line, env, _ := recorded(t, "podman", own, &lane.Command{
			Program: file(t, "/bin/cat"), Argv: []string{"/bin/cat"}, Stdin: []byte("stdin"), Timeout: 5 * time.Second,
			MaxOutput: 1 << 10,
		})
		all := " " + strings.Join(line, " ") + " "
		for _, flag := range []string{
			"--remote=false", "--rm", "--pull never", "--network none", "--memory 268435456", "--memory-swap 268435456",
			"--pids-limit 256", "--read-only",
			"--read-only-tmpfs=false", "--cap-drop ALL", "--security-opt no-new-privileges", "--unsetenv-all",
			"--http-proxy=false", "--image-volume ignore",
			"--security-opt seccomp=STATE/seccomp.json", "--timeout 35", "--hooks-dir STATE/hooks", "--user " +
				own.orDefault().User,
		} {
			if !strings.Contains(all, " "+flag+" ") {
				t.Errorf("%+v: %s is missing in %s", own, flag, all)
			}
		}
		for _, flag := range []string{"privileged", "--cap-add", "unconfined", "--device", "--pid ", "host", "docker.sock"} {
			if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(all, "--hostname", ""), "--no-hosts", ""), flag) {
				t.Errorf("%+v: %s in %s", own, flag, all)
			}
		}
		if !strings.Contains(env, "CONTAINERS_CONF=") || strings.Contains(env, "CONTAINERS_CONF=/x") ||
			strings.Contains(env, "CONTAINER_HOST") {
			t.Errorf("the client gets %q", env)
		}
	}
}

// An engine that is not there is no lane, and no other takes its place.
//
//rlp:holds K50 K52 K62 K63
func TestAnEngineThatDoesNotWork(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "podman")
	put(t, broken, "#!/bin/sh\necho 'Error: no cgroups' >&2\nexit 125\n")
	if err := os.Chmod(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		own  Config
		says string
	}{
		"no client":           {Config{Engine: "/srv/none/podman"}, "may write it (install podman"},
		"no engine":           {Config{Engine: "docker", Image: "rlp.invalid/none:1"}, "docker"},
		"docker and no image": {Config{Engine: filepath.Join(filepath.Dir(broken), "docker")}, "docker"},
		"broken":              {Config{Engine: broken}, "no cgroups"},
		"no AppArmor":         {Config{Engine: broken, AppArmor: "rlp"}, ""},
	} {
		l, err := lane.Open(t.Context(), "container", lane.Config{
			Work: filepath.Join(t.TempDir(), "a", "r"), ID: "test", Container: c.own,
		})
		var u *lane.UnsupportedError
		if l != nil || !errors.As(err, &u) || u.Lane != "container" || !strings.Contains(u.Text(), c.says) || u.Remedy == "" {
			t.Errorf("%s: %v, %v", name, l, err)
		}
		if name == "no AppArmor" && !hasAppArmor() && !strings.Contains(u.Why, "AppArmor is not enabled") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := filepath.Glob("/dev/shm/" + statePrefix() + "test"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A root of its own is not written to, and what is in it is found as the
// container finds it.
//
//rlp:holds K65
func TestARootOfItsOwn(t *testing.T) {
	root := smallRoot(t)
	before, _ := filepath.Glob(root + "/*")
	k := newContainer(t, func(c *lane.Config) { c.Container = Config{Rootfs: root} })
	if k == nil {
		return
	}
	f, err := k.Find("/usr/sh")
	if err != nil || f.Named != "/usr/sh" || f.File != "/bin/sh" || !slices.Contains(f.Via, root+"/bin/sh") ||
		!slices.Contains(f.Via, "/usr/sh") {
		t.Errorf("%+v, %v", f, err)
	}
	for _, path := range []string{"/bin/none", "/out/sh", "/../bin/sh", "bin/sh", "/proc/self/exe"} {
		if f, err := k.Find(path); err == nil {
			t.Errorf("%s: %+v", path, f)
		}
	}
	r := inContainer(t, k, &lane.Command{
		Program: f.File, Argv: []string{f.Named, "-c", "echo $0 *; echo x >/x; echo x >/bin/x; echo in >f"},
		Timeout: time.Minute, MaxOutput: 1 << 10,
	})
	if out := string(r.Stdout.Data); !strings.HasPrefix(out, "/usr/sh *\n") ||
		read(t, filepath.Join(k.cfg.Work, "f")) != "in\n" {
		t.Errorf("%s%s", out, r.Stderr.Data)
	}
	if r, err := k.Run(t.Context(), &lane.Command{
		Program: "/bin/rooted", Argv: []string{"/bin/rooted"}, Timeout: time.Minute,
		MaxOutput: 1 << 10,
	}); !errors.Is(err, lane.ErrNotProgram) {
		t.Errorf("a program for root alone: %+v, %v", r, err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := filepath.Glob(root + "/*"); err != nil || !slices.Equal(after, before) {
		t.Errorf("in the root: %v, %v; before: %v", after, err, before)
	}
}

// smallRoot is a root with a shell, and with what the shell needs.
func smallRoot(t *testing.T) string {
	t.Helper()
	root := openDir(t, 0o755)
	sh := file(t, "/bin/sh")
	copyTo(t, sh, root+"/bin/sh", 0o755)
	copyTo(t, sh, root+"/bin/rooted", 0o700)
	libraries, _ := exec.Command("ldd", sh).Output() // none: it is static
	for _, word := range strings.Fields(string(libraries)) {
		if filepath.IsAbs(word) {
			copyTo(t, file(t, word), root+word, 0o755)
		}
	}
	if err := os.Remove(root + "/file"); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"usr/sh": "/bin/sh", "out": "../../../../etc"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func copyTo(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(read(t, from)), mode); err != nil {
		t.Fatal(err)
	}
}

// A profile is the operator's without what no program gets in any lane.
func TestSeccompProfiles(t *testing.T) {
	text, err := seccompProfile([]byte(`{"defaultAction":"SCMP_ACT_ERRNO","archMap":[1],"syscalls":[
		{"names":["read","socket","keyctl"],"action":"SCMP_ACT_ALLOW","args":null},
		{"name":"clone","action":"SCMP_ACT_ALLOW","args":[]},{"names":["unshare"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_ADMIN"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if strings.Count(got, `"socket"`) != 1 || strings.Count(got, `"keyctl"`) != 1 || strings.Count(got, `"clone"`) != 1 ||
		strings.Count(got, `"unshare"`) != 1 ||
		strings.Contains(got, "CAP_SYS_ADMIN") || !strings.Contains(got, `"names":["read"]`) ||
		!strings.Contains(got, `"archMap":[1]`) {
		t.Error(got)
	}
	for _, bad := range []string{
		`{"defaultAction":"SCMP_ACT_ALLOW"}`, `{"defaultAction":"SCMP_ACT_LOG"}`, `{}`, `[]`,
		`{"defaultAction":1}`, `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":{}}`,
	} {
		if text, err := seccompProfile([]byte(bad)); err == nil {
			t.Errorf("%s: %s", bad, text)
		}
	}
}

// What somebody else can have written is nothing to build a lane by.
func TestToolsThatOthersMayWriteAreNone(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "podman")
	copyTo(t, "/bin/true", at, 0o755)
	for mode, want := range map[os.FileMode]string{0o755: at, 0o775: "", 0o757: "", 0o644: ""} {
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
		if got := lookIn(dir, "podman"); got != want {
			t.Errorf("%v: %q", mode, got)
		}
		var u *lane.UnsupportedError
		if _, err := findEngine(&Config{Engine: at}); (err == nil) != (want != "") || err != nil &&
			(!errors.As(err, &u) || !strings.Contains(u.Why, "others may write it")) {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chmod(at, 0o755), os.Chown(at, 65532, 0)); err != nil {
			t.Fatal(err)
		}
		if got := lookIn(dir, "podman"); got != "" {
			t.Errorf("somebody else's: %q", got)
		}
	}
}

// An engine that is still mounting what it is asked to take away is asked again,
// and one that says anything else is not.
func TestAnEngineThatIsBusyIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		says  string
		asked int
		fails bool
	}{{"unlinkat shm: device or resource busy", 2, false}, {"no cgroups", 1, true}} {
		asked := filepath.Join(dir, c.says[:2])
		client := filepath.Join(dir, "podman")
		put(t, client, "#!/bin/sh\necho >>"+asked+"\n[ $(wc -l <"+asked+") = 1 ] || exit 0\n"+
			"echo '"+c.says+"' >&2; exit 125\n")
		if err := os.Chmod(client, 0o700); err != nil {
			t.Fatal(err)
		}
		err := (&engine{path: client}).end(t.Context(), &state{dir: dir}, "x")
		if n := strings.Count(read(t, asked), "\n"); n != c.asked || (err != nil) != c.fails {
			t.Errorf("%s: asked %d times, %v", c.says, n, err)
		}
	}
}
