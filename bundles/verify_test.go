package bundles

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func codes(b *Bundle) string {
	var all []string
	for _, f := range b.Findings {
		all = append(all, f.Code)
	}
	return strings.Join(all, " ")
}

// Every form of one tree is one bundle: the same policy, the same module, the
// same digest.
//
//rlp:holds R2
func TestFormsOfOneTree(t *testing.T) {
	for i := range 20 {
		policy := fmt.Sprintf("[capabilities]\ntime = %v\n", i%2 == 0)
		tr := goodTree().with("policy.caps", policy).with(ManifestName, manifestFor(testWasm, policy))
		for n := range i {
			tr = tr.with(fmt.Sprintf("d%d/é/%d", n%3, n), noise(i*n*100))
		}
		src := filepath.Join(t.TempDir(), "src")
		tr.writeTo(t, filepath.Join(src, BuiltName))
		tr.writeTo(t, src)
		a := mustOpen(t, filepath.Join(src, BuiltName))
		for _, path := range []string{src, archive(t, tr.tar(t)), archive(t, gzipped(t, tr.tar(t)))} {
			b := mustOpen(t, path)
			if a.Digest != b.Digest || string(b.Policy) != policy || string(a.Policy) != policy || string(b.Wasm) != testWasm ||
				!maps.EqualFunc(a.Files, b.Files, bytes.Equal) || len(a.Files) != len(tr) {
				t.Fatalf("%s differs: digest %s and %s, policy %q and %q", path, a.Digest, b.Digest, a.Policy, b.Policy)
			}
		}
	}
}

// The digest changes with whatever the runtime uses and with nothing else.
func TestDigest(t *testing.T) {
	base := goodTree().with(ManifestName, agentHead+
		"entry_wasm = { path = \"agent.wasm\" }\n[artifacts.tools]\npath = \"tools.json\"\n").with("tools.json", noTools)
	open := func(tr tree) string { return mustOpen(t, archive(t, tr.tar(t))).Digest }
	want := open(base)
	if len(want) != 64 || want != open(base) {
		t.Fatalf("digest %q", want)
	}
	for name, change := range map[string]tree{
		"module":    base.with("agent.wasm", testWasm+"\x00\x01\x00"),
		"policy":    base.with("policy.caps", testPolicy+"#"),
		"no policy": base.without("policy.caps"),
		"artifact":  base.with("tools.json", noTools+" "),
		"manifest":  base.with(ManifestName, base[ManifestName]+"#"),
	} {
		if open(change) == want {
			t.Errorf("%s does not enter the digest", name)
		}
	}
	sig := base64.StdEncoding.EncodeToString(make([]byte, ed25519.SignatureSize))
	for name, change := range map[string]tree{
		"a file that nothing uses": base.with("README", "x"),
	} {
		if open(change) != want {
			t.Errorf("%s enters the digest", name)
		}
	}
	if open(goodTree().with(SignatureName, sig)) != open(goodTree()) {
		t.Error("the signature enters the digest")
	}
}

// One byte of a file differs from what the manifest means; a file is not there.
//
//rlp:holds R9 R88
func TestDigestsAreChecked(t *testing.T) {
	withBlake := strings.NewReplacer(
		`sha256 = "`+hexSum(testWasm), `blake3 = "`+blake3Hex([]byte(testWasm)),
		`sha256 = "`+hexSum(testPolicy), `blake3 = "`+blake3Hex([]byte(testPolicy)),
	).Replace(goodTree()[ManifestName])
	for what, manifest := range map[string]string{"sha256": goodTree()[ManifestName], "blake3": withBlake} {
		good := goodTree().with(ManifestName, manifest)
		if b := mustOpen(t, good.dir(t)); codes(b) != "" {
			t.Errorf("%s: findings %v", what, b.Findings)
		}
		e := wantRefused(t, good.with("agent.wasm", strings.Replace(testWasm, "\x01", "\x02", 1)).dir(t), "digest_mismatch")
		if e.Line != 5 || e.Column != 23 || !strings.Contains(e.Message, what) {
			t.Errorf("%v", e)
		}
		wantRefused(t, good.with("policy.caps", strings.Replace(testPolicy, "time", "exec", 1)).dir(t), "digest_mismatch")
		wantRefused(t, good.without("policy.caps").dir(t), "file_missing")
		wantRefused(t, good.without("agent.wasm").dir(t), "module_missing")
		wantRefused(t, good.without(ManifestName).dir(t), "manifest_missing")
	}
	both := strings.Replace(goodTree()[ManifestName], "sha256", `blake3 = "`+strings.Repeat("0", 64)+`", sha256`, 1)
	wantRefused(t, goodTree().with(ManifestName, both).dir(t), "digest_mismatch")
	upper := strings.Replace(goodTree()[ManifestName], hexSum(testWasm), strings.ToUpper(hexSum(testWasm)), 1)
	mustOpen(t, goodTree().with(ManifestName, upper).dir(t))
	dup := strings.Replace(goodTree()[ManifestName], "[caps]", "name = \"other\"\n[caps]", 1)
	wantRefused(t, goodTree().with(ManifestName, dup).dir(t), "manifest")
	huge := goodTree()[ManifestName] + strings.Repeat("#", MaxManifest)
	wantRefused(t, goodTree().with(ManifestName, huge).dir(t), "size")
	artifact := goodTree()[ManifestName] + "[artifacts.tools]\npath = \"tools.json\"\n"
	wantRefused(t, goodTree().with(ManifestName, artifact).dir(t), "file_missing")
}

// No policy is not every policy: absent and empty are told apart, and a named
// one that is not there refuses.
//
//rlp:holds R9
func TestAbsentPolicy(t *testing.T) {
	noCaps := agentHead + "entry_wasm = { path = \"agent.wasm\", sha256 = \"" + hexSum(testWasm) +
		"\" }\n[requires]\ntime = true\n"
	bare := goodTree().with(ManifestName, noCaps).without("policy.caps")
	b := mustOpen(t, bare.dir(t))
	if b.PolicyPresent || b.Policy != nil || b.PolicyPath != "" || b.Manifest.Requires == nil {
		t.Errorf("without a policy: %+v", b)
	}
	b = mustOpen(t, bare.with("policy.caps", "").dir(t))
	if !b.PolicyPresent || len(b.Policy) != 0 || b.PolicyName != "policy.caps" || codes(b) != "digest_missing" {
		t.Errorf("an empty policy by its default name: present %v, %s", b.PolicyPresent, codes(b))
	}
	named := bare.with(ManifestName, noCaps+"[caps]\nfile = \"mine.caps\"\n")
	e := wantRefused(t, named.dir(t), "file_missing")
	if e.Line == 0 || !strings.HasSuffix(e.File, ManifestName) {
		t.Errorf("%v", e)
	}
	b = mustOpen(t, named.with("mine.caps", testPolicy).with("policy.caps", "exec = true").dir(t))
	if string(b.Policy) != testPolicy || !strings.HasSuffix(b.PolicyPath, "mine.caps") ||
		codes(b) != "digest_missing file_unused" {
		t.Errorf("a named policy: %q, %s", b.Policy, codes(b))
	}
	if b := mustOpen(t, bare.with("Policy.caps", testPolicy).dir(t)); b.PolicyPresent {
		t.Error("a policy of another name was taken")
	}
}

// A signature that is there is said not to be verified, and makes digests a
// duty.
func TestSignatureIsNotTrusted(t *testing.T) {
	sig := base64.StdEncoding.EncodeToString(make([]byte, ed25519.SignatureSize))
	b := mustOpen(t, goodTree().with(SignatureName, sig+"\n").dir(t))
	if !b.Signed || codes(b) != "signature_not_verified" || b.Findings[0].Severity != Warning {
		t.Errorf("%v %v", b.Signed, b.Findings)
	}
	if b := mustOpen(t, goodTree().dir(t)); b.Signed {
		t.Error("signed by nothing")
	}
	undigested := agentHead + "entry_wasm = { path = \"agent.wasm\" }\n"
	if b := mustOpen(t, goodTree().with(ManifestName, undigested).dir(t)); codes(b) != "digest_missing digest_missing" {
		t.Errorf("unsigned: %s", codes(b))
	}
	wantRefused(t, goodTree().with(ManifestName, undigested).with(SignatureName, sig).dir(t), "digest_missing")
	implied := agentHead + "entry_wasm = { path = \"agent.wasm\", sha256 = \"" + hexSum(testWasm) + "\" }\n"
	wantRefused(t, goodTree().with(ManifestName, implied).with(SignatureName, sig).dir(t), "digest_missing")
	for _, bad := range []string{
		"", "x", sig[:80], sig + sig, base64.StdEncoding.EncodeToString(make([]byte, 63)),
		sig[:len(sig)-3] + "B==",
	} {
		wantRefused(t, goodTree().with(SignatureName, bad).dir(t), "signature_malformed")
	}
}

func TestRemarks(t *testing.T) {
	native := strings.Replace(goodTree()[ManifestName], "entry_wasm", "entry_native = { path = \"x\" }\nentry_wasm", 1)
	native = strings.Replace(native, "version = \"0.1.0\"\n", "", 1)
	b := mustOpen(t, goodTree().with(ManifestName, native).with("tools.json", noTools).dir(t))
	if codes(b) != "entry_native_ignored version_missing file_unused" || b.Findings[0].Line != 4 {
		t.Errorf("%v", b.Findings)
	}
	native = strings.Replace(native, "entry_wasm", "entry_wsm", 1)
	wantRefused(t, goodTree().with(ManifestName, native).dir(t), "manifest")
}

// Packing the folder instead of what is in it is the usual mistake.
func TestWrappedArchive(t *testing.T) {
	wrapped := tree{}
	for name, data := range goodTree() {
		wrapped["agent.bundle/"+name] = data
	}
	e := wantRefused(t, archive(t, wrapped.tar(t)), "manifest_missing")
	if !strings.Contains(e.Message, `there is one in "agent.bundle"`) {
		t.Errorf("%v", e)
	}
	dotted := wantRefused(t, archive(t, raw(rawEntry{name: "./", kind: '5'})), "entry_name")
	if !strings.Contains(dotted.Hint, "tar -C DIR") {
		t.Errorf("%v", dotted)
	}
}

// The bundle of the public system with its files put beside its manifest.
func TestPublicBundle(t *testing.T) {
	tr := tree{}
	for _, name := range []string{ManifestName, "policy.caps"} {
		text, err := os.ReadFile(filepath.Join("testdata/runloop/writer", name))
		must(t, err)
		tr[name] = string(text)
	}
	tr["bin/writer.wasm"], tr["tools.json"] = testWasm, noTools
	wantRefused(t, tr.dir(t), "digest_mismatch") // those are not the files that it means
	files := map[string][]byte{}
	for name, data := range tr {
		files[name] = []byte(data)
	}
	filled, err := fillDigests(ManifestName, []byte(tr[ManifestName]), files, "")
	must(t, err)
	b := mustOpen(t, tr.with(ManifestName, string(filled)).dir(t))
	if codes(b) != "" || string(b.Wasm) != testWasm || b.Manifest.Agent.String() != "writer" {
		t.Errorf("%v", b.Findings)
	}
	if !maps.Equal(map[string]bool{"with": true}, map[string]bool{sortedKeys(b.Manifest.Schemas)[0]: true}) {
		t.Errorf("%v", b.Manifest.Schemas)
	}
}
