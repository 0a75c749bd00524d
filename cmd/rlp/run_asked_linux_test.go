package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever is asked at the terminal of a program sees the question and nothing of the
// program's over it, and what is typed is the answer alone. The program goes on then.
func TestAQuestionAtAProgramsTerminal(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, ".runloop"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".runloop", "config.toml"), []byte("security.confirm_external_actions = true\n"), 0o600))
	for _, args := range [][]string{{"init"}, {"put", "runloop/api/key"}} {
		c := runIn(home, "")
		c.Args = append([]string{c.Args[0], "secrets"}, args...)
		c.Stdin = strings.NewReader("value-of-the-key")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	policy := filepath.Join(dir, "asker.caps")
	must(t, os.WriteFile(policy, []byte(`schema = "0.2"
[[inject]]
host = "api.example.com"
methods = ["POST"]
path = "/v1/*"
header = "Authorization: Bearer {secret}"
secret = "runloop/api/key"
[capabilities]
net = ["api.example.com"]
secrets = [{ id = "runloop/api/key", hosts = ["api.example.com"] }]
exec = true
`), 0o600))
	s := sit(t, home, "asker", "--policy", policy, "--", "bash", "-c", `
stty -echo
while :; do printf 'Weather: press y\r'; done & loud=$!
curl -s -d a=b http://api.example.com.rlp/v1/x >/dev/null
kill $loud; wait $loud
echo "was $((40+2)) asked"; read -r typed; echo "read [$typed]"`)
	s.sees("Allow it this once? [y/N] ", "n\r")
	if behind := s.sees("was 42 asked", "later\r"); !strings.HasPrefix(behind, "n\r\n") {
		t.Errorf("shown behind the question: %.80q", behind)
	}
	s.sees("read [later]", "")
	s.ends(0)
}
