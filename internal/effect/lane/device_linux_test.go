package lane

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Devices in a sandbox are the machine's own: who is root out here owns them.
//
//rlp:holds K44
func TestProgramsChangeNoDevices(t *testing.T) {
	const script = `for d in null zero full random urandom; do chmod 666 /dev/$d && echo changed $d; done
echo x >/dev/null && echo written; head -c 2 /dev/zero | wc -c; head -c 2 /dev/urandom | wc -c; df -i /tmp | tail -1`
	eachSandbox(t, func(t *testing.T, name string) {
		r := run(t, newLane(t, name), shell(t, script))
		out := string(r.Stdout.Data)
		if !strings.HasPrefix(out, "written\n2\n2\n") || !strings.Contains(out, " 65536 ") {
			t.Errorf("%s%s", out, r.Stderr.Data)
		}
	})
	if os.Geteuid() != 0 {
		return // nobody else owns them
	}
	if out, err := exec.Command("/bin/sh", "-c", script).Output(); err != nil || !strings.Contains(string(out),
		"changed null") {
		t.Errorf("control: %v: %s", err, out)
	}
}
