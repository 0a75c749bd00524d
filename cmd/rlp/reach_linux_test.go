package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fetcher is a client in Go.
const fetcher = `package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
	b, _ := io.ReadAll(r.Body)
	fmt.Println(string(b))
}
`

const greeting = "hello from here"

// Programs that know nothing of proxies reach the server that is granted, by TLS with an
// authority of its own, and no other: as root and as an ordinary user. The first answer
// is untrusted content; after it npm and git start what they need as before.
//
//rlp:holds N2 N11
func TestProgramsReachWhatIsGranted(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	files := clients(t, dir)
	urls, other := twoServers(t, filepath.Join(files, "ca.pem"))
	script := []string{"sh", filepath.Join(files, "reach.sh"), files, urls[0], urls[1]}
	control := exec.Command(script[0], script[1:]...)
	control.Dir = t.TempDir()
	control.Env = []string{"HOME=" + control.Dir, "PATH=/usr/bin:/bin"}
	out, err := control.CombinedOutput()
	if err != nil || strings.Contains(string(out), "refused") || other.Load() == 0 {
		t.Errorf("control, in no sandbox: %v\n%s", err, out)
	}
	wanted := strings.Count(string(out), " granted: ")
	args := []string{
		"run", "--name", "reacher", "--audit-allow", "--allow", "process:exec:*", "--allow", "fs:read:" + files,
		"--allow", "network:https:" + strings.TrimPrefix(urls[0], "https://"),
	}
	if conf, err := filepath.EvalSymlinks("/etc/java-17-openjdk"); err == nil {
		args = append(args, "--allow", "fs:read:"+conf)
	}
	args = append(append(args, "--"), script...)
	for name, id := range users() {
		other.Store(0)
		home := filepath.Join(dir, name)
		must(t, os.Mkdir(home, 0o700))
		must(t, os.Chown(home, id, id))
		c := asUser(t, dir, home, id, args...)
		var problems strings.Builder
		c.Stderr = &problems
		out, err := c.Output()
		if err != nil || strings.Count(string(out), " granted: "+greeting+"\n") != wanted ||
			strings.Count(string(out), " other: refused\n") != wanted || other.Load() != 0 {
			t.Errorf("%s: %v, the other server was asked %d times\n%s%s", name, err, other.Load(), out, problems.String())
		}
		text, err := asUser(t, dir, home, id, "audit", "list", "--json").Output()
		must(t, err)
		for _, want := range []string{
			`"cap":"net.connect","op":"connect","target":"` + urls[0] + `"`,
			`"source":"_untrusted","label":"http:` + urls[0] + `"`,
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: the log has no %s", name, want)
			}
		}
	}
}

// clients is a folder with what the programs are started by.
func clients(t *testing.T, dir string) string {
	t.Helper()
	files := filepath.Join(dir, "files")
	must(t, os.Mkdir(files, 0o755))
	for _, name := range []string{"reach.sh", "Fetch.class"} {
		text, err := os.ReadFile("testdata/programs/" + name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(files, name), text, 0o644))
	}
	source := filepath.Join(t.TempDir(), "main.go")
	must(t, os.WriteFile(source, []byte(fetcher), 0o600))
	build := exec.Command("go", "build", "-o", filepath.Join(files, "fetcher"), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return files
}

// twoServers are one on loopback and one that is not, where there is an address for it;
// how often the latter was asked is counted. Their authority is written to a file.
func twoServers(t *testing.T, ca string) (urls [2]string, other *atomic.Int64) {
	t.Helper()
	elsewhere := outward(t)
	local, serve := localCertificate(t, ca, elsewhere), registry(t)
	other = new(atomic.Int64)
	for i, at := range []net.IP{net.IPv4(127, 0, 0, 1), elsewhere} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			other.Add(int64(i))
			serve.ServeHTTP(w, r)
		}))
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: at})
		must(t, err)
		must(t, s.Listener.Close())
		s.Listener = l
		s.TLS, s.Config.ErrorLog = &tls.Config{Certificates: []tls.Certificate{local}}, log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		urls[i] = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	}
	return urls, other
}

// outward is an address of this machine that connections of a sandbox would leave for,
// where it has one.
func outward(t *testing.T) net.IP {
	t.Helper()
	list, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range list {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// users are those who run programs: this one, and where that is root an ordinary one.
func users() map[string]int {
	of := map[string]int{"own": os.Geteuid()}
	if os.Geteuid() == 0 {
		of["ordinary"] = 65534
	}
	return of
}

// openFolder is a folder that other users enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rlp-reach")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// asUser is the built rlp, for a user.
func asUser(t *testing.T, dir, home string, id int, args ...string) *exec.Cmd {
	t.Helper()
	built := filepath.Dir(builtProgram(t))
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err == nil {
		must(t, os.CopyFS(bin, os.DirFS(built)))
		must(t, filepath.Walk(bin, func(path string, _ os.FileInfo, _ error) error { return os.Chmod(path, 0o755) }))
	}
	c := exec.Command(filepath.Join(bin, "rlp"), args...)
	c.Env, c.Dir = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, home
	if id != os.Geteuid() {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	}
	return c
}

// localCertificate is one for localhost and an address, of an authority that is written to
// a file.
func localCertificate(t *testing.T, file string, at net.IP) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	top := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{at},
		NotBefore:   top.NotBefore, NotAfter: top.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	root, err := x509.CreateCertificate(rand.Reader, top, top, key.Public(), key)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, leaf, top, key.Public(), key)
	must(t, err)
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o644))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// registry serves a repository of git, a package for npm, one for pip, and a greeting.
func registry(t *testing.T) http.Handler {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "r.git")
	must(t, exec.Command("sh", "-c", `git init -q -b main "$0.tmp" && cd "$0.tmp" && echo `+greeting+` >greeting && git add . &&
git -c user.name=a -c user.email=a@b commit -qm one && git clone -q --bare . "$0"`, repo).Run())
	at, err := exec.Command("git", "--exec-path").Output()
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle("/git/", &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(at)), "git-http-backend"), Root: "/git",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(repo), "GIT_HTTP_EXPORT_ALL=1"},
	})
	packed := npmPackage(t)
	sum := sha512.Sum512(packed)
	mux.HandleFunc("/greet", func(w http.ResponseWriter, r *http.Request) {
		version := map[string]any{
			"name": "greet", "version": "1.0.0", "bin": map[string]string{"greet": "greet.js"},
			"dist": map[string]string{
				"tarball":   "https://" + r.Host + "/greet.tgz",
				"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
			},
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": "greet", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version},
		})
	})
	mux.HandleFunc("/greet.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed) })
	wheel := pipPackage(t)
	mux.HandleFunc("/simple/greet/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!DOCTYPE html><a href="/greet-1.0-py3-none-any.whl">greet-1.0-py3-none-any.whl</a>`)
	})
	mux.HandleFunc("/greet-1.0-py3-none-any.whl", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(wheel) })
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, greeting) })
	return mux
}

func npmPackage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{
		"package.json": `{"name": "greet", "version": "1.0.0", "bin": {"greet": "greet.js"}}`,
		"greet.js":     "#!/usr/bin/env node\nconsole.log('" + greeting + "')\n",
	} {
		must(t, w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o755, Size: int64(len(text))}))
		_, err := io.WriteString(w, text)
		must(t, err)
	}
	must(t, w.Close())
	must(t, z.Close())
	return b.Bytes()
}

func pipPackage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"greet.py":                     "print('" + greeting + "')\n",
		"greet-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n",
		"greet-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"greet-1.0.dist-info/RECORD":   "greet.py,,\n",
	} {
		w, err := z.Create(name)
		must(t, err)
		_, err = io.WriteString(w, text)
		must(t, err)
	}
	must(t, z.Close())
	return b.Bytes()
}
