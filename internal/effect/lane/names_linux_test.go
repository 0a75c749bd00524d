package lane

import (
	"os"
	"strings"
	"testing"
)

// What has a protected name of several parts, one of them any, stays; what only begins
// as one does not, nor a file that is called as such a folder. The control is the same
// script where nothing is protected.
//
//rlp:holds N20
func TestNamesOfSeveralParts(t *testing.T) {
	const script = `
try() { "$@" 2>/dev/null && echo "$*"; }
try mkdir -p .git/trees/new
for at in .git/trees/one .git/trees/new; do
	try dd if=/dev/null of=$at/common; try mkdir $at/common; try ln -s x $at/common; try touch $at/index
	try mv $at .git/trees/other; mkdir -p m; echo x >m/common; try mv -T m $at
	try rmdir $at; try mv .git/trees .git/other
done
try touch .conf; echo x >made; try mv made .conf; try rm .conf
mkdir -p d/fish; try mv -T d .conf; try ln -s d .conf; try mkdir .conf; try mkdir .conf/fish; try mv .conf away
try touch sub/.conf/git
`
	eachSandbox(t, func(t *testing.T, name string) {
		for _, protected := range [][]string{nil, {".git/trees/*/common", ".conf/fish"}} {
			dir := shared(t)
			for _, d := range []string{"/.git/trees/one", "/sub/.conf"} {
				if err := os.MkdirAll(dir+d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			c := shell(t, "cd "+dir+script)
			c.Folders, c.Protected = []Folder{{Path: dir, Access: ReadWrite}}, protected
			out := string(run(t, newLane(t, name), c).Stdout.Data)
			want := "mkdir -p .git/trees/new\ntouch .git/trees/one/index\ntouch .git/trees/new/index\n" +
				"touch .conf\nmv made .conf\nrm .conf\nmkdir .conf\ntouch sub/.conf/git\n"
			if protected == nil {
				for _, line := range []string{
					"dd if=/dev/null of=.git/trees/one/common", "mv .git/trees/one .git/trees/other", "mv -T d .conf", "ln -s d .conf",
				} {
					if !strings.Contains(out, line+"\n") {
						t.Errorf("control: not done: %s\n%s", line, out)
					}
				}
				continue
			}
			if out != want {
				t.Errorf("done:\n%s\nwant:\n%s", out, want)
			}
		}
	})
}
