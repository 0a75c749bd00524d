// Command dist makes what is released, or installs it, from programs that
// `make dist` and `make install` built.
//
//	dist archives WORK OUT          one archive and one SBOM a system, and SHA256SUMS
//	dist install WORK ROOT PREFIX   the same files for this system beneath ROOT/PREFIX
//
// WORK has a folder os/arch for each system with its programs: rlp, and for Linux
// rlp-confine. Manual and completions are what the program of this system prints.
//
// The law: the same source and the same Go give the same bytes, in any folder and
// at any time. So no file has a time, an owner or a path of where it was made.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	source, host := os.DirFS("."), runtime.GOOS+"/"+runtime.GOARCH
	switch {
	case len(args) == 3 && args[0] == "archives":
		targets, err := built(args[1])
		if err != nil {
			return err
		}
		p, err := printed(ctx, filepath.Join(args[1], filepath.FromSlash(host), "rlp"))
		if err != nil {
			return err
		}
		return archives(release{source: source, work: args[1], printed: p}, targets, args[2], out)
	case len(args) == 4 && args[0] == "install":
		p, err := printed(ctx, filepath.Join(args[1], filepath.FromSlash(host), "rlp"))
		if err != nil {
			return err
		}
		return install(release{source: source, work: args[1], printed: p}, host, args[2], args[3])
	}
	return fmt.Errorf("usage: dist archives WORK OUT, or dist install WORK ROOT PREFIX")
}

// archives writes what is released for each target into dir, which must be there.
func archives(r release, targets []string, dir string, out io.Writer) error {
	for _, target := range targets {
		files, sbom, err := r.files(target, "/usr/local")
		if err != nil {
			return err
		}
		name := r.name(target)
		path := filepath.Join(dir, name+".tar.gz")
		if err := writeFile(path, func(w io.Writer) error { return tarball(w, name, files) }); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".cdx.json"), sbom, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, path)
	}
	return sums(dir)
}

// install puts the files of a target beneath root, where they work once root is /.
func install(r release, target, root, prefix string) error {
	if !filepath.IsAbs(prefix) {
		return fmt.Errorf("PREFIX is %q: write an absolute path, such as /usr/local", prefix)
	}
	files, _, err := r.files(target, prefix)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.mode.IsDir() {
			continue
		}
		to := filepath.Join(root, prefix, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := replace(to, f); err != nil {
			return err
		}
	}
	return nil
}

// replace makes a file appear whole: a program that runs stays as it is.
func replace(to string, f entry) error {
	if err := os.WriteFile(to+".new", f.data, f.mode); err != nil {
		return err
	}
	if err := os.Chmod(to+".new", f.mode); err != nil { // whatever the umask is
		return err
	}
	return os.Rename(to+".new", to)
}
