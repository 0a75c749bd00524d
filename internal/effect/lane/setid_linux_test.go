package lane_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/lane"
)

// makingSetID makes files that run as their owner, in all ways that a shell and
// perl have, and says which came to be.
const makingSetID = `cd "$1" && cp /bin/true a && for mode in u+s g+s 4755; do chmod $mode a; done
perl -e 'sysopen(F, "b", 65, 04755); syscall(85, "c", 04755); chmod(06755, "a"); open(G, "<", "a") and chmod(04755, *G)'
find . -type f -perm /6000; mkdir d && chmod 1777 d && chmod 755 a && echo ordinary`

// Programs in a sandbox are the operator out here: a file that they made and that
// runs as its owner would run as the operator, whoever starts it.
//
//rlp:holds K44
func TestNoProgramMakesFilesThatRunAsTheirOwner(t *testing.T) {
	command := func(dir string) *lane.Command {
		c := lane.Shell(t, makingSetID)
		c.Argv = append(c.Argv, "sh", dir)
		c.Folders = []lane.Folder{{Path: dir, Access: lane.ReadWrite}}
		return c
	}
	test := func(t *testing.T, l lane.Lane) {
		dir := openDir(t, 0o777)
		r := lane.Run(t, l, command(dir))
		if got := string(r.Stdout.Data); got != "ordinary\n" {
			t.Errorf("%d: %s%s", r.ExitCode, got, r.Stderr.Data)
		}
		for _, name := range []string{"a", "b", "c"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				t.Errorf("%s: %v", name, info.Mode())
			}
		}
	}
	inSandboxes(t, test)
	out, err := exec.Command("/bin/sh", "-c", makingSetID, "sh", openDir(t, 0o777)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "./a\n") || !strings.Contains(string(out), "./b\n") {
		t.Errorf("control: %v: %s", err, out)
	}
}
