package container

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

func enginePolicies() []string {
	return []string{"/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json", "/etc/docker/seccomp.json"}
}

// A call of a seccomp profile is what to do about some system calls.
type seccompCall struct {
	Names    []string        `json:"names"`
	Name     string          `json:"name,omitempty"` // as the oldest profiles have it
	Action   string          `json:"action"`
	ErrnoRet *uint           `json:"errnoRet,omitempty"`
	Args     []seccompArg    `json:"args"`
	Includes json.RawMessage `json:"includes,omitempty"`
	Excludes json.RawMessage `json:"excludes,omitempty"`
}

type seccompArg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

// seccompProfile is the profile of containers: the operator's or the engine's,
// without what programs have in no lane. Engines leave programs sockets, new
// namespaces, tracing and keys.
func seccompProfile(text []byte) ([]byte, error) {
	for _, path := range enginePolicies() {
		if text != nil {
			break
		}
		text, _ = os.ReadFile(path)
	}
	if text == nil {
		return nil, &lane.UnsupportedError{
			Lane: "container", Why: "there is no seccomp profile in " + strings.Join(enginePolicies(), ", "),
			Remedy: "install containers-common, or name a profile by [exec] seccomp",
		}
	}
	var profile map[string]json.RawMessage
	var action string
	var calls []seccompCall
	err := strictjson.Unmarshal(text, &profile)
	if err == nil {
		err = strictjson.Unmarshal(profile["defaultAction"], &action)
	}
	if list := profile["syscalls"]; err == nil && list != nil {
		err = strictjson.Unmarshal(list, &calls, strictjson.UnknownFields) // of newer engines
	}
	if err != nil {
		return nil, fmt.Errorf("reading the seccomp profile: %w", err)
	}
	if action != "SCMP_ACT_ERRNO" && !strings.HasPrefix(action, "SCMP_ACT_KILL") {
		return nil, fmt.Errorf("the seccomp profile allows what it does not name: defaultAction is %q, and must be "+
			"SCMP_ACT_ERRNO", action)
	}
	if profile["syscalls"], err = json.Marshal(append(without(calls), refusals()...)); err != nil {
		return nil, fmt.Errorf("writing the seccomp profile: %w", err)
	}
	return json.Marshal(profile)
}

// without is calls with nothing about those that we speak of ourselves.
func without(calls []seccompCall) []seccompCall {
	var ours []string
	for _, c := range refusals() {
		ours = append(ours, c.Names...)
	}
	var left []seccompCall
	for _, c := range calls {
		if c.Name != "" {
			c.Names, c.Name = append(c.Names, c.Name), ""
		}
		c.Names = slices.DeleteFunc(slices.Clone(c.Names), func(name string) bool { return slices.Contains(ours, name) })
		if len(c.Names) > 0 {
			left = append(left, c)
		}
	}
	return left
}

// refusals are the rules that every lane has, in the words of a profile.
func refusals() []seccompCall {
	masked := func(index uint, mask, value uint64) []seccompArg {
		return []seccompArg{{index, mask, value, "SCMP_CMP_MASKED_EQ"}}
	}
	is := func(index uint, value uint64) []seccompArg { return []seccompArg{{index, value, 0, "SCMP_CMP_EQ"}} }
	not := func(index uint, value uint64) []seccompArg { return []seccompArg{{index, value, 0, "SCMP_CMP_NE"}} }
	no := func(errno unix.Errno, names ...string) seccompCall {
		n := uint(errno)
		return seccompCall{Names: names, Action: "SCMP_ACT_ERRNO", ErrnoRet: &n, Args: []seccompArg{}}
	}
	yes := func(name string, args []seccompArg) seccompCall {
		return seccompCall{Names: []string{name}, Action: "SCMP_ACT_ALLOW", Args: args}
	}
	return append(setIDCalls(),
		no(unix.EACCES, "socket", "socketcall"),
		yes("socketpair", append(is(0, unix.AF_UNIX), masked(1, sandbox.SocketTypes, unix.SOCK_STREAM)...)),
		yes("socketpair", append(is(0, unix.AF_UNIX), masked(1, sandbox.SocketTypes, unix.SOCK_SEQPACKET)...)),
		yes("setrlimit", not(0, unix.RLIMIT_CORE)),
		yes("prlimit64", not(1, unix.RLIMIT_CORE)),
		yes("prlimit64", is(2, 0)),
		no(unix.ENOSYS, "clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"),
		yes("clone", masked(0, sandbox.NewNamespaces, 0)),
		yes("unshare", masked(0, sandbox.NewNamespaces, 0)),
		no(unix.EPERM, "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig",
			"fsmount", "fspick",
			"mount_setattr", "setns", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "process_madvise",
			"kcmp",
			"perf_event_open", "bpf", "add_key", "request_key", "keyctl", "userfaultfd", "fanotify_init", "init_module",
			"finit_module",
			"delete_module", "kexec_load", "kexec_file_load", "reboot", "syslog", "swapon", "swapoff", "quotactl", "quotactl_fd",
			"acct", "vhangup",
			"settimeofday", "clock_settime", "sethostname", "setdomainname", "open_by_handle_at", "name_to_handle_at",
			"lookup_dcookie",
			"iopl", "ioperm", "modify_ldt", "uselib", "migrate_pages", "move_pages"),
		yes("ioctl", not(1, unix.TIOCSTI)), // a second condition on one argument would be an alternative
	)
}

// setIDCalls are the same rules in the words of a profile.
func setIDCalls() []seccompCall {
	errno := uint(unix.ENOSYS)
	list := []seccompCall{{Names: []string{"openat2"}, Action: "SCMP_ACT_ERRNO", ErrnoRet: &errno, Args: []seccompArg{}}}
	without := func(name string, index uint32, bits uint64) seccompCall {
		return seccompCall{
			Names: []string{name}, Action: "SCMP_ACT_ALLOW",
			Args: []seccompArg{{uint(index), bits, 0, "SCMP_CMP_MASKED_EQ"}},
		}
	}
	for _, c := range sandbox.ModeCalls() {
		list = append(list, without(c.Name, c.Mode, sandbox.SetID))
		if c.Flags >= 0 {
			list = append(list, without(c.Name, uint32(c.Flags), sandbox.Making))
		}
	}
	return list
}
