package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// Exec is [exec]: where programs run, and what they get there.
type Exec struct {
	Lane string `path:"-"` // "auto", "native", "ns", "bwrap" or "container"

	// Of every lane.
	MemoryBytes                    int64 // of all processes of a program together
	Pids                           int64 // how many these are, threads too
	AskedMemory, AskedPids         bool  // the two were given: what cannot keep them is refused
	StdoutMaxBytes, StderrMaxBytes int64

	// Of the lane "container" alone.
	Engine string `path:"exec.engine"` // "podman", "docker", or the absolute path of one; "" is whichever is there
	Image  string `path:"-"`           // what the engine has by this name; "" is none
	// a folder instead of an image; "" is none, and with no image the host's own programs
	Rootfs       string   `path:"exec.rootfs"`
	User         string   `path:"-"` // uid:gid
	Tmpfs        []string `path:"-"`
	Seccomp      string   `path:"exec.seccomp"` // the path of a profile; "" is the engine's own
	SeccompText  []byte   // what was in it when it was checked
	AppArmor     string   `path:"-"` // "" is the engine's own
	UlimitNofile Ulimit
	UlimitNproc  Ulimit
	CPUs         float64 // 0 is all

	// Asked are the keys that were given, of those that only the lane "container"
	// can keep, each with its place.
	Asked map[string]tomlfile.Pos `path:"-"`
}

// A Ulimit is a soft and a hard limit.
type Ulimit struct{ Soft, Hard int64 }

// MaxExecStream is what is kept of each stream of a program at most: what the
// calls hand to an agent.
const MaxExecStream = 1 << 20

func defaultExec() Exec {
	return Exec{
		Lane: "auto", MemoryBytes: 1 << 30, Pids: 256, StdoutMaxBytes: MaxExecStream, StderrMaxBytes: MaxExecStream,
		User: "65532:65532", Tmpfs: []string{"/tmp:rw,noexec,nosuid,nodev,size=64m"},
		UlimitNofile: Ulimit{1024, 1024}, UlimitNproc: Ulimit{4096, 4096},
	}
}

func execSettings() []setting {
	const mib = 1 << 20
	return []setting{
		text("exec.lane", func(c *Config) *string { return &c.Exec.Lane }, oneOf("auto", "native", "ns", "bwrap",
			"container")),
		count("exec.memory_bytes", func(c *Config) *int64 { c.Exec.AskedMemory = true; return &c.Exec.MemoryBytes }, 16*mib,
			1<<46),
		count("exec.pids", func(c *Config) *int64 { c.Exec.AskedPids = true; return &c.Exec.Pids }, 1, 1<<16),
		count("exec.stdout_max_bytes", func(c *Config) *int64 { return &c.Exec.StdoutMaxBytes }, 1, MaxExecStream),
		count("exec.stderr_max_bytes", func(c *Config) *int64 { return &c.Exec.StderrMaxBytes }, 1, MaxExecStream),
		contained(text("exec.engine", func(c *Config) *string { return &c.Exec.Engine }, engineName)),
		contained(text("exec.image", func(c *Config) *string { return &c.Exec.Image }, imageName)),
		contained(text("exec.rootfs", func(c *Config) *string { return &c.Exec.Rootfs }, rootFolder)),
		contained(text("exec.user", func(c *Config) *string { return &c.Exec.User }, userAndGroup)),
		contained(list("exec.tmpfs", func(c *Config) *[]string { return &c.Exec.Tmpfs }, tmpfsMount)),
		contained(setting{
			name: "exec.seccomp", text: true, set: setSeccomp, show: func(c *Config) any { return c.Exec.Seccomp },
		}),
		contained(text("exec.apparmor", func(c *Config) *string { return &c.Exec.AppArmor }, appArmorProfile)),
		contained(ulimit("exec.ulimit_nofile", func(c *Config) *Ulimit { return &c.Exec.UlimitNofile }, 1<<20)),
		contained(ulimit("exec.ulimit_nproc", func(c *Config) *Ulimit { return &c.Exec.UlimitNproc }, 1<<22)),
		contained(setting{name: "exec.cpus", set: setCPUs, show: func(c *Config) any { return c.Exec.CPUs }}),
	}
}

// contained remembers where a setting was given that only the lane "container"
// keeps.
func contained(s setting) setting {
	set := s.set
	s.set = func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
		if c.Exec.Asked == nil {
			c.Exec.Asked = map[string]tomlfile.Pos{}
		}
		c.Exec.Asked[strings.TrimPrefix(name, "exec.")] = v.Pos
		set(w, name, v, c)
	}
	return s
}

func ulimit(name string, field func(*Config) *Ulimit, high int64) setting {
	return setting{name: name, text: true, set: setUlimit(field, high), show: func(c *Config) any {
		return fmt.Sprintf("%d:%d", field(c).Soft, field(c).Hard)
	}}
}

// setUlimit takes one number for both limits, or "soft:hard".
func setUlimit(field func(*Config) *Ulimit, high int64) func(*tomlfile.Walk, string, *tomlfile.Value, *Config) {
	return func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
		written := v.Str
		if v.Kind == tomlfile.Integer {
			written = strconv.FormatInt(v.Int, 10)
		} else if !w.Is(v, name, tomlfile.String) {
			return
		}
		soft, hard, two := strings.Cut(written, ":")
		if !two {
			hard = soft
		}
		s, ok1 := decimal(soft, high)
		h, ok2 := decimal(hard, high)
		if !ok1 || !ok2 || s > h || s == 0 {
			w.Errorf(v.Pos, `such as 1024 or "1024:4096"`,
				`%s must be a limit or "soft:hard", from 1 to %d, the soft one not above the hard one, not %q`, name, high, written)
			return
		}
		*field(c) = Ulimit{s, h}
	}
}

func setCPUs(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	n := v.Float
	if v.Kind == tomlfile.Integer {
		n = float64(v.Int)
	} else if !w.Is(v, name, tomlfile.Float) {
		return
	}
	most := float64(runtime.NumCPU())
	if math.IsNaN(n) || n < 0.01 || n > most {
		w.Errorf(v.Pos, "leave it out for all of them", "%s must be from 0.01 to %g, the processors of this machine, not %g",
			name, most, n)
		return
	}
	c.Exec.CPUs = n
}

// setSeccomp reads the profile: what was judged is what programs get, whatever
// is in the file by then.
func setSeccomp(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	if !w.Is(v, name, tomlfile.String) {
		return
	}
	if !filepath.IsAbs(v.Str) || filepath.Clean(v.Str) != v.Str {
		w.Errorf(v.Pos, `such as "/etc/rlp/seccomp.json"; leave it out for the engine's own`,
			"%s must be the absolute path of a profile, not %q", name, v.Str)
		return
	}
	data, err := tomlfile.ReadFile(v.Str, 1<<20)
	if err != nil {
		msg := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			msg = "there is no " + v.Str
		}
		w.Errorf(v.Pos, "a regular file that only the operator or root may write", "%s: %s", name, msg)
		return
	}
	var profile struct {
		DefaultAction string `json:"defaultAction"`
	}
	const example = `{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [...]}`
	if err := strictjson.Unmarshal(data, &profile, strictjson.UnknownFields); err != nil ||
		!strings.HasPrefix(profile.DefaultAction, "SCMP_ACT_") {
		w.Errorf(v.Pos, example, "%s: %s is no seccomp profile in JSON", name, v.Str)
		return
	}
	if profile.DefaultAction != "SCMP_ACT_ERRNO" && !strings.HasPrefix(profile.DefaultAction, "SCMP_ACT_KILL") {
		w.Errorf(v.Pos, example, "%s: %s allows what it does not name: its defaultAction is %q", name, v.Str,
			profile.DefaultAction)
		return
	}
	c.Exec.Seccomp, c.Exec.SeccompText = v.Str, data
}

// combine refuses settings of [exec] that cannot be kept together: a control
// that the chosen lane does not have would be dropped in silence.
func combine(w *tomlfile.Walk, c *Config) {
	x := &c.Exec
	if x.Lane != "auto" && x.Lane != "container" {
		for _, key := range slices.Sorted(maps.Keys(x.Asked)) {
			w.Errorf(x.Asked[key], `write lane = "container", or remove the setting`,
				"exec.%s is kept by the lane container alone, and exec.lane is %q", key, x.Lane)
		}
	}
	mounted := map[string]bool{}
	for _, m := range x.Tmpfs {
		dir, _, _ := strings.Cut(m, ":")
		if mounted[dir] {
			w.Errorf(x.Asked["tmpfs"], "write its options once", "exec.tmpfs has the folder %s twice", dir)
		}
		mounted[dir] = true
	}
	docker := filepath.Base(x.Engine) == "docker"
	switch {
	case x.Image != "" && x.Rootfs != "":
		w.Errorf(x.Asked["rootfs"], "remove one of them", "exec.image and exec.rootfs are two answers to one question")
	case docker && x.Rootfs != "":
		w.Errorf(x.Asked["rootfs"], `write engine = "podman", or give an image`,
			"exec.rootfs is not to be had with docker, which starts images alone")
	case docker && x.Image == "":
		w.Errorf(x.Asked["engine"], `such as image = "docker.io/library/alpine:3"`,
			"exec.engine is docker, which starts images alone, and exec.image is not given")
	}
}

func rootFolder(s string) string {
	const want = "must be the absolute path of a folder with the root of a system in it"
	if !filepath.IsAbs(s) || filepath.Clean(s) != s || s == "/" || strings.ContainsAny(s, ":,") {
		return want
	}
	if info, err := os.Lstat(s); err != nil || !info.IsDir() {
		return want + ", and not a link"
	}
	return ""
}
