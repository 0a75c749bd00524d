package lane

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// attacks execute what was granted, and by each way another program; each says so that
// works. The first argument is a folder that can be written, with the file granted.
const attacks = `
import ctypes, os, shutil, sys, tempfile
dir, granted, echo, python = sys.argv[1], sys.argv[1] + "/granted", "/usr/bin/echo", os.readlink("/proc/self/exe")
loader = next(p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p))

def copy(to, file=echo):
    shutil.copyfile(file, to)
    os.chmod(to, 0o755)
    return to

def script(to, line):
    with open(to, "w") as f: f.write("#!" + line + "\n")
    os.chmod(to, 0o755)
    return to

def memory(flags):
    fd = os.memfd_create("x", flags)
    with open(echo, "rb") as f: os.write(fd, f.read())
    os.fchmod(fd, 0o755)
    return os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)

def unnamed():
    fd = os.open(dir, os.O_TMPFILE | os.O_RDWR, 0o755)
    with open(echo, "rb") as f: os.write(fd, f.read())
    ro = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
    os.close(fd)
    return ro

def removed():
    path = copy(dir + "/removed")
    fd = os.open(path, os.O_RDONLY)
    os.unlink(path)
    return fd

def linked():
    os.link(copy(dir + "/linked"), dir + "/linked2")
    return dir + "/linked2"

def renamed():
    os.rename(copy(dir + "/renamed"), granted)
    return granted

def overwritten():
    with open(granted, "r+b") as f: f.write(b"#!/usr/bin/echo ran\n")
    return granted

def loads(path): return lambda: os.execv(path, ["ld", echo, "ran"])
def runs(of): return lambda: os.execve(of(), ["echo", "ran"], {})

ways = {
    "itself": lambda: os.execv(python, ["python3", "-c", "print('ran')"]),
    "itself by /proc": lambda: os.execv("/proc/self/exe", ["python3", "-c", "print('ran')"]),
    "granted": lambda: os.execv(granted, ["granted"]),
    "path": lambda: os.execv(echo, ["echo", "ran"]),
    "link": lambda: os.execv("/bin/echo", ["echo", "ran"]),
    "root": lambda: os.execv("/proc/self/root/usr/bin/echo", ["echo", "ran"]),
    "descriptor": runs(lambda: os.open(echo, os.O_RDONLY)),
    "path descriptor": lambda: os.execv("/proc/self/fd/%d" % os.open(echo, os.O_PATH), ["echo", "ran"]),
    "shell": lambda: os.execv("/bin/sh", ["sh", "-c", "echo ran"]),
    "loader": loads(loader),
    "loader by its own name": loads(os.path.realpath(loader)),
    "loader, copied": lambda: loads(copy(dir + "/ld", loader))(),
    "loader, interpreting": lambda: os.execv(script(dir + "/byld", loader + " " + echo), ["ran"]),
    "script": lambda: os.execv(script(dir + "/script", echo + " ran"), ["x"]),
    "script for what is granted": lambda: os.execv(script(dir + "/own", python + "\nprint('ran')"), ["x"]),
    "copy": runs(lambda: copy(dir + "/copy")),
    "copy in the working folder": runs(lambda: copy("copy")),
    "copy in /tmp": runs(lambda: copy("/tmp/copy")),
    "memory": runs(lambda: memory(0)),
    "executable memory": runs(lambda: memory(0x10)),
    "unnamed": runs(unnamed),
    "removed": runs(removed),
    "hard link": runs(linked),
    "renamed over": runs(renamed),
    "overwritten": runs(overwritten),
}
for name, way in ways.items():
    sys.stdout.flush()
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(w, 1)
        try: way()
        except BaseException as e: os.write(2, ("%s: %s\n" % (name, e)).encode())
        os._exit(1)
    os.close(w)
    out = os.read(r, 100).decode().strip()
    os.close(r)
    os.waitpid(pid, 0)
    if out: print(name)
`

// A program executes itself and what it was granted, whatever way it takes; control:
// each works, but for what stays as it is, where nothing is bounded.
func TestNothingElseIsExecuted(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		tries := func(x *Executables) []string {
			dir := shared(t)
			granted := filepath.Join(dir, "granted")
			if err := os.WriteFile(granted, []byte("#!/usr/bin/printf ran\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if x != nil && !x.Others {
				x.Files = append(x.Files, granted)
			}
			python, err := filepath.EvalSymlinks("/usr/bin/python3")
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, newLane(t, name, func(c *Config) { c.Executes = x != nil }), &Command{
				Program: python, Argv: []string{"python3", "-c", attacks, dir}, Env: []string{"PATH=/usr/bin"},
				Folders: []Folder{{Path: dir, Access: ReadWrite}}, Timeout: time.Minute, MaxOutput: 1 << 16, Executes: x,
			})
			t.Logf("%s", r.Stderr.Data)
			return strings.Split(strings.TrimSpace(string(r.Stdout.Data)), "\n")
		}
		all := tries(nil)
		if len(all) != 25 {
			t.Errorf("control: %q", all)
		}
		if got := tries(&Executables{}); !slices.Equal(got, []string{"itself", "itself by /proc", "granted"}) {
			t.Errorf("%q", got)
		}
		// All that is there but one file: nothing that was written, for that may be a copy.
		echo, err := filepath.EvalSymlinks("/usr/bin/echo")
		if err != nil {
			t.Fatal(err)
		}
		got := tries(&Executables{Others: true, Files: []string{echo}})
		if !slices.Equal(got, []string{"itself", "itself by /proc", "shell"}) {
			t.Errorf("all but echo: %q", got)
		}
	})
}

// A script brings what interprets it, and what env finds for it.
func TestInterpretersAreExecuted(t *testing.T) {
	dir := shared(t)
	for name, text := range map[string]string{
		"env": "#!/usr/bin/env -S prog -x\n", "direct": "#!" + dir + "/prog\n", "prog": "#!/bin/sh\n",
		"looped": "#!" + dir + "/looped\n", "none": "#!prog\n", "text": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh, env := file(t, "/bin/sh"), file(t, "/usr/bin/env")
	for name, want := range map[string][]string{
		"env": {env, dir + "/prog", sh}, "direct": {dir + "/prog", sh}, "prog": {sh}, "none": nil, "text": nil,
		"looped": slices.Repeat([]string{dir + "/looped"}, maxInterpreters),
	} {
		if got := interpreters(filepath.Join(dir, name), "/nowhere:"+dir); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Whoever runs a program is asked before each other file is executed, once or each
// time, and his answer counts; what is missing or no program is not asked about.
func TestExecutingIsAskedAbout(t *testing.T) {
	const script = `/usr/bin/echo one; sh -c 'echo itself'; exec 3</usr/bin/echo; /proc/self/fd/3 two; /nowhere; /etc/passwd
cp /usr/bin/echo .; ./echo three; /usr/bin/env; /usr/bin/env; true | /usr/bin/true`
	eachSandbox(t, func(t *testing.T, name string) {
		for _, each := range []bool{false, true} {
			asked := map[string]int{}
			c := shell(t, script)
			env := file(t, "/usr/bin/env")
			c.Each, c.Asked = each, func(file string, written bool) bool {
				if written != strings.Contains(file, "/agent/run/") {
					t.Errorf("%s: written %v", file, written)
				}
				asked[filepath.Base(file)]++
				return file != env
			}
			l := newLane(t, name)
			r := run(t, l, c)
			if got := string(r.Stdout.Data); got != "one\nitself\ntwo\nthree\n" {
				t.Errorf("%s%s", got, r.Stderr.Data)
			}
			want := map[string]int{"echo": 2, "cp": 1, "env": 1, "true": 1}
			if each {
				want["echo"], want["env"] = 3, 2
			}
			if !maps.Equal(asked, want) {
				t.Errorf("each %v: %v", each, asked)
			}
		}
	})
}
