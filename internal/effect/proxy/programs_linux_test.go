package proxy_test

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"runloop.dev/rlp/internal/effect/netns/netnstest"
	"runloop.dev/rlp/internal/effect/proxy"
)

// repository is a folder with a repository that git fetches over plain HTTP.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", dir + "/work"},
		{
			"-C", dir + "/work", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty",
			"-m", "first",
		},
		{"clone", "-q", "--bare", dir + "/work", dir + "/repo.git"},
		{"-C", dir + "/repo.git", "update-server-info"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

const inPython = `
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=10).read().decode())
    except Exception as e:
        print("refused", type(getattr(e, "reason", e)).__name__)
`

const inNode = `
for (const url of process.argv.slice(1)) {
  try { console.log(await (await fetch(url)).text()) } catch (e) { console.log("refused", e.cause?.code) }
}
`

const inShell = `
for url in "$@"; do curl -sS --max-time 10 "$url" 2>&1 | sed 's/^curl: (\([0-9]*\)) .*/refused \1/'; echo; done
`

// Programs that know nothing of any proxy reach what is granted, and nothing else.
func TestPrograms(t *testing.T) {
	cert, ca := authority(t)
	repo := repository(t)
	var others atomic.Int64
	who(t, func(t *testing.T, c netnstest.Config) {
		w := newWorld(t, map[string]proxy.Ways{
			"api.test:443": proxy.TLS, "api.test:80": proxy.HTTP, "api.test:8080": proxy.HTTP, "api.test:5432": proxy.Bytes,
		})
		hello := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Host, "other") {
				others.Add(1)
			}
			_, _ = rw.Write([]byte("hello " + r.Proto + " " + r.Host))
		})
		w.web("443", cert, hello)
		w.web("80", nil, hello)
		w.web("8080", nil, http.FileServer(http.Dir(repo)))
		w.web("5432", nil, hello)
		c.Env = []string{
			"CURL_CA_BUNDLE=" + ca, "SSL_CERT_FILE=" + ca, "NODE_EXTRA_CA_CERTS=" + ca, "HOME=/tmp", "GIT_CONFIG_NOSYSTEM=1",
		}
		urls := []string{
			"https://api.test/", "http://api.test/", "http://api.test:5432/",
			"https://other.test/", "http://other.test/", "http://93.184.215.14/",
			"http://169.254.169.254/", "http://[2001:db8::1]/",
		}
		const granted = "hello HTTP/1.1 api.test\nhello HTTP/1.1 api.test\nhello HTTP/1.1 api.test:5432\n"
		for name, p := range map[string]struct {
			argv []string
			want string
		}{
			"curl": {
				append([]string{"sh", "-c", inShell, "sh"}, urls...),
				granted + "refused 6\n\nrefused 6\n\nrefused 56\n\nrefused 56\n\nrefused 56\n\n",
			},
			"python": {
				append([]string{"/usr/bin/python3", "-c", inPython}, urls...),
				granted + strings.Repeat("refused gaierror\n", 2) + strings.Repeat("refused ConnectionResetError\n", 3),
			},
			"node": {
				append([]string{"node", "--input-type=module", "-e", inNode, "--"}, urls...),
				granted + strings.Repeat("refused ENOTFOUND\n", 2) + strings.Repeat("refused ECONNRESET\n", 3),
			},
			"git": {
				[]string{"git", "ls-remote", "http://api.test:8080/repo.git", "refs/heads/main"}, "\trefs/heads/main\n",
			},
			"git elsewhere": {
				[]string{"git", "ls-remote", "http://other.test:8080/repo.git"}, "Could not resolve host: other.test\nexit status 128\n",
			},
		} {
			t.Run(name, func(t *testing.T) {
				w.t = t
				out := w.run(c, p.argv...)
				out = strings.ReplaceAll(out, "HTTP/2.0", "HTTP/1.1")
				for _, code := range []string{"7", "55"} { // as curl saw the reset sooner or later
					out = strings.ReplaceAll(out, "refused "+code+"\n", "refused 56\n")
				}
				if !strings.HasSuffix(out, p.want) {
					t.Errorf("got\n%swant\n%s", out, p.want)
				}
			})
		}
		for _, l := range w.lookups {
			if l != "api.test." {
				t.Errorf("%s was looked up", l)
			}
		}
		for _, want := range []string{
			"allowed https://api.test:443", "allowed http://api.test:80 GET", "allowed tcp://api.test:5432",
			"unknown other.test", "denied http://93.184.215.14:80", "denied http://[2001:db8::1]:80",
		} {
			if !slices.Contains(w.policy.said(), want) {
				t.Errorf("not recorded: %s; but %q", want, w.policy.said())
			}
		}
	})
	if others.Load() != 0 {
		t.Error("another host was reached")
	}
	// Control: outside of such a network the same program reaches it.
	w := newWorld(t, nil)
	w.web("80", nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	to := "::" + w.lead[public.String()+":80"]
	out, err := exec.Command("curl", "-sS", "--connect-to", to, "http://other.test/").CombinedOutput()
	if err != nil || others.Load() != 1 {
		t.Errorf("control: %v, %s", err, out)
	}
}
