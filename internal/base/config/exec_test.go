package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/tomlfile"
)

func profile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "seccomp.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

const denyAll = `{"defaultAction": "SCMP_ACT_ERRNO"}`

//rlp:holds K49 K64
func TestEveryControlOfPrograms(t *testing.T) {
	d := config.Default().Exec
	if d.MemoryBytes != 1073741824 || d.Pids != 256 || d.User != "65532:65532" || len(d.Tmpfs) != 1 ||
		!strings.HasPrefix(d.Tmpfs[0], "/tmp:") ||
		d.StdoutMaxBytes+d.StderrMaxBytes != 2048<<10 || d.Asked != nil || d.AskedMemory || d.AskedPids {
		t.Errorf("defaults: %+v", d)
	}
	seccomp, rootfs := profile(t, denyAll, 0o600), t.TempDir()
	c, err := load(t, fmt.Sprintf(`
[exec]
lane = "container"
memory_bytes = 536870912
pids = 64
stdout_max_bytes = 1000
stderr_max_bytes = 2000
engine = "/usr/bin/podman"
rootfs = %q
user = "1000:1001"
tmpfs = ["/tmp", "/var/tmp:rw,exec,nosuid,nodev,size=8m,mode=1777"]
seccomp = %q
apparmor = "rlp-default"
ulimit_nofile = 256
cpus = 0.5
`, rootfs, seccomp), "RUNLOOP__EXEC__ULIMIT_NPROC=32:64", "RUNLOOP__EXEC__PIDS=65")
	if err != nil {
		t.Fatal(err)
	}
	got := c.Exec
	asked := got.Asked
	got.Asked = nil
	want := config.Exec{
		Lane: "container", MemoryBytes: 512 << 20, Pids: 65, AskedMemory: true, AskedPids: true, StdoutMaxBytes: 1000,
		StderrMaxBytes: 2000,
		Engine:         "/usr/bin/podman", Rootfs: rootfs, User: "1000:1001",
		Tmpfs:   []string{"/tmp", "/var/tmp:rw,exec,nosuid,nodev,size=8m,mode=1777"},
		Seccomp: seccomp, SeccompText: []byte(denyAll), AppArmor: "rlp-default",
		UlimitNofile: config.Ulimit{Soft: 256, Hard: 256}, UlimitNproc: config.Ulimit{Soft: 32, Hard: 64}, CPUs: 0.5,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(asked) != 9 || asked["user"].String() != "config.toml:10:8" || !strings.Contains(asked["ulimit_nproc"].String(),
		"RUNLOOP__EXEC__ULIMIT_NPROC") {
		t.Errorf("asked: %v", asked)
	}
}

//rlp:holds K51 K64
func TestMalformedControlsAreRefused(t *testing.T) {
	open, text, array := profile(t, denyAll, 0o622), profile(t, "not json", 0o600), profile(t, `[]`, 0o600)
	loose := profile(t, `{"defaultAction": "SCMP_ACT_ALLOW"}`, 0o600)
	link := filepath.Join(filepath.Dir(text), "link.json")
	if err := os.Symlink(profile(t, denyAll, 0o600), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, says string }{
		{`memory_bytes = 0`, "config.toml:3:16: exec.memory_bytes must be from 16777216"},
		{`memory_bytes = -1`, "exec.memory_bytes must be from"},
		{`memory_bytes = "1g"`, "exec.memory_bytes must be an integer"},
		{`memory_bytes = 1.5`, "must be an integer"},
		{`pids = 0`, "exec.pids must be from 1 to 65536"},
		{`pids = 65537`, "exec.pids must be from 1 to 65536"},
		{`stdout_max_bytes = 1048577`, "exec.stdout_max_bytes must be from 1 to 1048576"},
		{`stderr_max_bytes = 0`, "exec.stderr_max_bytes must be from 1"},
		{`memory = 5`, `unknown key "exec.memory"`},
		{`privileged = true`, `unknown key "exec.privileged"`},
		{`user = "root"`, `config.toml:3:8: exec.user must be "uid:gid"`},
		{`user = "65532"`, "exec.user"},
		{`user = "0:0"`, "neither of them 0"},
		{`user = "65532:0"`, "neither of them 0"},
		{`user = "00:1"`, "exec.user"},
		{`user = "-1:1"`, "exec.user"},
		{`user = "1:4294967296"`, "exec.user"},
		{`user = 65532`, "exec.user must be a string"},
		{`tmpfs = "/tmp"`, "exec.tmpfs must be an array"},
		{`tmpfs = ["tmp"]`, "config.toml:3:10: exec.tmpfs[0] must be the absolute path"},
		{`tmpfs = ["/tmp/../etc"]`, "absolute path"},
		{`tmpfs = ["/proc/x"]`, "folder of the kernel's"},
		{`tmpfs = ["/"]`, "must not be /"},
		{`tmpfs = ["/tmp:suid"]`, "has options of"},
		{`tmpfs = ["/tmp:size=1x"]`, "has options of"},
		{`tmpfs = ["/tmp:size=0"]`, "has options of"},
		{`tmpfs = ["/tmp:size=1kk"]`, "has options of"},
		{`tmpfs = ["/tmp:mode=999"]`, "has options of"},
		{`tmpfs = ["/tmp:"]`, "has options of"},
		{`tmpfs = ["/tmp", "/tmp:ro"]`, "the folder /tmp twice"},
		{`seccomp = "seccomp.json"`, "config.toml:3:11: exec.seccomp must be the absolute path"},
		{`seccomp = "unconfined"`, "absolute path"},
		{`seccomp = "/srv/there/is/none.json"`, "exec.seccomp:"},
		{fmt.Sprintf(`seccomp = %q`, filepath.Dir(open)+"/none.json"), "there is no "},
		{fmt.Sprintf(`seccomp = %q`, filepath.Dir(open)), "exec.seccomp:"},
		{fmt.Sprintf(`seccomp = %q`, open), "only the operator or root may write"},
		{fmt.Sprintf(`seccomp = %q`, link), "exec.seccomp:"},
		{fmt.Sprintf(`seccomp = %q`, text), "no seccomp profile in JSON"},
		{fmt.Sprintf(`seccomp = %q`, loose), "allows what it does not name"},
		{fmt.Sprintf(`seccomp = %q`, array), "no seccomp profile in JSON"},
		{`apparmor = "unconfined"`, `config.toml:3:12: exec.apparmor must be the name of a profile, and not "unconfined"`},
		{`apparmor = "a b"`, "name of a profile"},
		{`apparmor = "-x"`, "name of a profile"},
		{`apparmor = ""`, "name of a profile"},
		{`ulimit_nofile = 0`, "config.toml:3:17: exec.ulimit_nofile must be a limit"},
		{`ulimit_nofile = "4096:1024"`, "the soft one not above the hard one"},
		{`ulimit_nofile = "-1"`, "must be a limit"},
		{`ulimit_nofile = "1:2:3"`, "must be a limit"},
		{`ulimit_nproc = "unlimited"`, "must be a limit"},
		{`ulimit_nproc = true`, "must be a string"},
		{`cpus = 0`, "exec.cpus must be from 0.01"},
		{`cpus = nan`, "exec.cpus must be from 0.01"},
		{`cpus = 100000`, "the processors of this machine"},
		{`cpus = "1"`, "must be a decimal number"},
		{`engine = "nerdctl"`, "exec.engine must be"},
		{`engine = "bin/podman"`, "exec.engine must be"},
		{`engine = "docker"`, "exec.image is not given"},
		{`image = "-v/:/host"`, "name of an image"},
		{`image = "a b"`, "name of an image"},
		{`image = ""`, "name of an image"},
		{`rootfs = "/"`, "root of a system"},
		{`rootfs = "/srv/there/is/none"`, "root of a system"},
		{fmt.Sprintf("image = \"a\"\nrootfs = %q", filepath.Dir(open)), "two answers"},
		{fmt.Sprintf("engine = \"docker\"\nrootfs = %q", filepath.Dir(open)), "is not to be had with docker"},
	} {
		_, err := load(t, "[exec]\nlane = \"container\"\n"+c.line+"\n")
		var at *tomlfile.Error
		if err == nil || !strings.Contains(err.Error(), c.says) || !errors.As(err, &at) {
			t.Errorf("%s: %v does not say %q", c.line, err, c.says)
		}
	}
}

// A control that only a container keeps is not dropped in silence.
//
//rlp:holds K50
func TestControlsOfAnotherLaneAreRefused(t *testing.T) {
	lines := []string{
		`engine = "podman"`, `image = "a"`, `rootfs = "` + t.TempDir() + `"`, `user = "1:1"`, `tmpfs = ["/tmp"]`,
		`seccomp = "` + profile(t, denyAll, 0o600) + `"`, `apparmor = "a"`, `ulimit_nofile = 9`, `ulimit_nproc = 9`,
		`cpus = 1`,
	}
	for _, line := range lines {
		key, _, _ := strings.Cut(line, " ")
		for _, lane := range []string{"native", "ns", "bwrap", "container", "auto"} {
			_, err := load(t, line2(lane, line))
			says := fmt.Sprintf("exec.%s is kept by the lane container alone, and exec.lane is %q", key, lane)
			if other := lane != "container" && lane != "auto"; other != (err != nil) || other && !strings.Contains(err.Error(),
				says) {
				t.Errorf("lane %s, %s: %v", lane, line, err)
			}
		}
	}
	_, err := load(t, line2("container", lines[3]), "RUNLOOP__EXEC__LANE=bwrap")
	if err == nil || !strings.Contains(err.Error(), "config.toml:3:8: exec.user is kept by the lane container alone") {
		t.Errorf("the lane of the environment: %v", err)
	}
	if _, err := load(t, line2("bwrap", "memory_bytes = 33554432\npids = 5\nstdout_max_bytes = 5")); err != nil {
		t.Errorf("controls of every lane: %v", err)
	}
}

func line2(lane, line string) string { return fmt.Sprintf("[exec]\nlane = %q\n%s\n", lane, line) }
