package config

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The forms of words in [exec]. They go to the command line of an engine, so
// that nothing passes which it could read as something else.

func engineName(s string) string {
	base := filepath.Base(s)
	if base != "podman" && base != "docker" || s != base && (!filepath.IsAbs(s) || filepath.Clean(s) != s) {
		return `must be "podman", "docker" or the absolute path of one of them`
	}
	return ""
}

func imageName(s string) string {
	if s == "" || len(s) > 255 || !isAlnum(s[0]) || !only(s, "._/:@-+") {
		return `must be the name of an image, such as "docker.io/library/alpine:3"`
	}
	return ""
}

// userAndGroup wants numbers: a name is another user in each image. Neither is
// root's, which would have the files of the operator's root where the engine
// maps no users.
func userAndGroup(s string) string {
	const most = 1<<31 - 2
	uid, gid, ok := strings.Cut(s, ":")
	u, ok1 := decimal(uid, most)
	g, ok2 := decimal(gid, most)
	if !ok || !ok1 || !ok2 || u == 0 || g == 0 {
		return `must be "uid:gid" in numbers, neither of them 0, such as "65532:65532"`
	}
	return ""
}

func tmpfsMount(s string) string {
	dir, options, more := strings.Cut(s, ":")
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || strings.ContainsAny(dir, ", \t\n\\\"'") {
		return `must be the absolute path of a folder and its options, such as "/tmp:rw,noexec,nosuid,size=64m"`
	}
	for _, closed := range []string{"/proc", "/sys", "/dev"} {
		if dir == "/" || dir == closed || strings.HasPrefix(dir, closed+"/") {
			return "must not be / or a folder of the kernel's"
		}
	}
	if !more {
		return ""
	}
	for option := range strings.SplitSeq(options, ",") {
		if !isTmpfsOption(option) {
			return "has options of rw, ro, exec, noexec, nosuid, nodev, size=64m and mode=1777"
		}
	}
	return ""
}

func isTmpfsOption(s string) bool {
	key, value, _ := strings.Cut(s, "=")
	switch key {
	case "size":
		n, ok := decimal(strings.TrimRight(value, "kmg"), 1<<40)
		return ok && n > 0 && len(value)-len(strings.TrimRight(value, "kmg")) <= 1
	case "mode":
		n, err := strconv.ParseUint(value, 8, 16)
		return err == nil && n <= 0o1777
	}
	return slices.Contains([]string{"rw", "ro", "exec", "noexec", "nosuid", "nodev"}, s)
}

func appArmorProfile(s string) string {
	if s == "" || len(s) > 255 || s == "unconfined" || !isAlnum(s[0]) || !only(s, "._/-") {
		return `must be the name of a profile, and not "unconfined"`
	}
	return ""
}

func decimal(s string, most int64) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && n <= most && strconv.FormatInt(n, 10) == s
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func only(s, more string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && strings.IndexByte(more, s[i]) < 0 {
			return false
		}
	}
	return true
}
