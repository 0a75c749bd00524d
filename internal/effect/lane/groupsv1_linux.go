package lane

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// spawnerThreads is the spawner: a thread in the group that is no program's.
const spawnerThreads = 1

// makeGroupsV1 makes the groups, each where it can.
func makeGroupsV1(id string, b Bounds) *groupsV1 {
	r := &groupsV1{}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return r
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return r
	}
	r.memory = r.group(oldGroup(string(mounts), string(own), "memory"), id, []limit{
		{"memory.limit_in_bytes", b.Memory, true},
		{"memory.memsw.limit_in_bytes", b.Memory, false}, // not there: no swap is accounted
	})
	r.pids = r.group(oldGroup(string(mounts), string(own), "pids"), id,
		[]limit{{"pids.max", b.Pids + spawnerThreads, true}})
	return r
}

type limit struct {
	file  string
	value int64
	must  bool
}

// group makes one group below parent, limited and locked, or none.
func (r *groupsV1) group(parent, id string, limits []limit) string {
	if parent == "" {
		return ""
	}
	removeLeft(parent)
	path := filepath.Join(parent, groupName(id))
	if unix.Mkdir(path, 0o700) != nil {
		return ""
	}
	lock, err := lockGroup(path)
	for _, l := range limits {
		if err == nil {
			if e := writeNumber(filepath.Join(path, l.file), l.value); e != nil && (l.must || !errors.Is(e, unix.ENOENT)) {
				err = e
			}
		}
	}
	if err != nil {
		if lock >= 0 {
			_ = unix.Close(lock)
		}
		_ = unix.Rmdir(path)
		return ""
	}
	r.locks = append(r.locks, lock)
	return path
}

func (r *groupsV1) enter() {
	for _, path := range []*string{&r.memory, &r.pids} {
		if *path != "" && writeNumber(filepath.Join(*path, "tasks"), int64(unix.Gettid())) != nil {
			_ = unix.Rmdir(*path)
			*path = ""
		}
	}
}

func (r *groupsV1) oomKills() int64 {
	if r.memory == "" {
		return 0
	}
	return countIn(filepath.Join(r.memory, "memory.oom_control"), "oom_kill")
}

// boundsMemory reports whether all processes of a program share one bound.
func (n *native) boundsMemory() bool {
	return n.group != nil && n.group.memory || n.groupsV1.memory != ""
}

// boundsPids is the same of how many they are.
func (n *native) boundsPids() bool {
	return n.group != nil && n.group.pids || n.groupsV1.pids != ""
}

// oomKills counts, until something else is started, what was ended for want of
// memory.
func (n *native) oomKills() int64 { return n.group.oomKills() + n.groupsV1.oomKills() }

func (r *groupsV1) close() error {
	var errs []error
	for _, path := range []string{r.memory, r.pids} {
		if path == "" {
			continue
		}
		err := removeGroup(path, 0)
		for until := time.Now().Add(killTime); errors.Is(err, unix.EBUSY) && time.Now().Before(until); err = removeGroup(path,
			0) {
			pause()
		}
		errs = append(errs, err)
	}
	for _, fd := range r.locks {
		_ = unix.Close(fd)
	}
	*r = groupsV1{}
	return errors.Join(errs...)
}

// oldGroup is our own group in the first version's hierarchy of a controller,
// as a path here; "" when it is not to be seen.
func oldGroup(mounts, own, controller string) string {
	group := ""
	for line := range strings.Lines(own) { // 4:memory:/user.slice
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) == 3 && hasWord(parts[1], controller) {
			group = parts[2]
		}
	}
	if group == "" {
		return ""
	}
	for line := range strings.Lines(mounts) { // 36 35 0:31 root mount options - type source options
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) < 3 || kind[0] != "cgroup" || !hasWord(kind[2], controller) {
			continue
		}
		rel, err := filepath.Rel(fields[3], group)
		if err != nil || !filepath.IsLocal(rel) && rel != "." {
			continue
		}
		return filepath.Join(fields[4], rel)
	}
	return ""
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// countIn is the number after a word at the beginning of a line of a file.
func countIn(path, word string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n
		}
	}
	return 0
}

func writeNumber(path string, n int64) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, strconv.AppendInt(nil, n, 10))
	return err
}

// BoundLabels say how well memory and processes of programs can be bounded
// here, in a lane whose programs cannot leave their control group. They are
// found by making groups and taking them away again.
func BoundLabels() (memory, pids Label) {
	const remedy = "start rlp where it may make control groups with the controllers memory and pids below its own"
	b := Bounds{}.OrDefault()
	g := makeGroup("probe", b)
	r := makeGroupsV1("probe", b)
	memory = Label{
		BestEffort, "no control group can bound memory here; each process is bounded by itself (rlimit)",
		remedy,
	}
	pids = Label{Unsupported, "no control group can bound processes here", remedy}
	if g != nil && g.memory || r.memory != "" {
		memory = Label{Level: Enforced}
	}
	if g != nil && g.pids || r.pids != "" {
		pids = Label{Level: Enforced}
	}
	if g != nil {
		_ = g.close()
	}
	_ = r.close()
	return memory, pids
}
