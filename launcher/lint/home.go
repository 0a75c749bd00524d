package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/record/runlog"
	"runloop.dev/rlp/launcher/compose"
)

// HintUnread is the hint about an override whose agent nobody has seen, where no other
// agent is called nearly so: it may be written before the first launch.
const HintUnread = "rename it to the id of its agent and .toml; an override that is written before the first launch " +
	"is read by that"

// codeUnread is a file that nothing reads because of its name.
const codeUnread policy.Code = "override_unread"

// Home looks at every file of a home that launches read, as they read it: overrides,
// profiles, templates, and the profiles that settings name. It tells what is refused,
// and what nothing reads.
func Home(r *compose.Reader, h home.Home, cfg config.Config) []policy.Finding {
	l := &linter{reader: r, home: h, opt: r.Options(h, cfg)}
	l.opt.Resolve = leads
	for _, dir := range l.folders() {
		l.folder(dir)
	}
	if cfg.Security.PathProfile != "relaxed" {
		l.refuseAsLaunches()
	}
	l.Findings = append(l.Findings, NamedProfiles(r, h, cfg)...)
	l.Findings = slices.DeleteFunc(l.Findings, func(f policy.Finding) bool {
		return f.Severity != policy.SeverityError && f.Code != codeUnread
	})
	policy.Sort(l.Findings)
	return l.Findings
}

// folders are those of the home in which each file is an override, a profile or a template.
func (l *linter) folders() []string {
	return []string{
		filepath.Dir(l.home.Override("x")), filepath.Dir(l.home.Profile("x")), filepath.Dir(l.home.Template("x")),
	}
}

// isFolder reports whether path is one of those folders.
func (l *linter) isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(l.folders(), func(dir string) bool {
		other, err := os.Stat(dir)
		return err == nil && os.SameFile(info, other)
	})
}

// folder lints the files of a folder of the home; one that is not there has none.
// Hidden files are what was saved before a change.
func (l *linter) folder(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.Findings = append(l.Findings, policy.FileFinding(dir, err))
		l.Unread = true
	}
	known := l.agents()
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch stem, isTOML := strings.CutSuffix(e.Name(), ".toml"); {
		case strings.HasPrefix(e.Name(), "."):
		case !isTOML:
			l.name(path)
		default:
			l.path(path, "")
			if dir == filepath.Dir(l.home.Override("x")) {
				l.unknownAgent(path, stem, known)
			}
		}
	}
}

// agents are those that are installed, for any tenant, or that the logs tell of.
func (l *linter) agents() []string {
	found := map[string]bool{}
	for _, tenant := range l.home.Tenants() {
		names, _ := tomlfile.Names(tenant.Agents()) // none is nothing
		for _, name := range names {
			found[name] = true
		}
		for _, name := range runlog.Agents(tenant.Log()) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// unknownAgent warns of an override of an agent that nobody has seen, where others
// were seen: it was perhaps meant for one of them, which is launched without it.
func (l *linter) unknownAgent(path, stem string, known []string) {
	if _, err := ident.ParseAgent(stem); err != nil || len(known) == 0 || slices.Contains(known, stem) {
		return
	}
	hint := HintUnread
	if near := tomlfile.Near(stem, known); near != "" {
		hint = fmt.Sprintf("did you mean %s.toml? mv -n %s %s", near, path, l.home.Override(near))
		if _, err := os.Lstat(l.home.Override(near)); err == nil {
			hint = fmt.Sprintf("%s is there as well: keep in it what is to hold, and remove this file", l.home.Override(near))
		}
	}
	l.Findings = append(l.Findings, policy.Finding{
		Path: path, Severity: policy.SeverityWarning, Code: codeUnread,
		Message: "no agent of that name is installed or has run, so no launch has read this override", Hint: hint,
	})
}

// NamedProfiles tells which profiles that the settings name there are not, or are
// refused by their names. What is wrong in the files of others is told of the files.
func NamedProfiles(r *compose.Reader, h home.Home, cfg config.Config) []policy.Finding {
	var findings []policy.Finding
	look := func(setting, at, name string) {
		if name == "" {
			return
		}
		_, err := r.Profile(&compose.Composition{Home: h, Config: cfg}, name)
		var refused *policy.Error
		if err == nil || errors.As(err, &refused) || errors.Is(err, tomlfile.ErrFile) {
			return
		}
		mend := "rlp caps profiles, then rlp config set " + setting + " NAME"
		if unknown, is := errors.AsType[*compose.UnknownProfileError](err); is && unknown.Nearest() != "" {
			mend = "rlp config set " + setting + " " + unknown.Nearest()
		}
		if variable, is := strings.CutPrefix(at, "environment variable "); is {
			mend = "unset " + strings.TrimSuffix(variable, ": ")
		}
		findings = append(findings, policy.Finding{
			Severity: policy.SeverityError, Code: policy.CodeBadName, Field: setting,
			Message: fmt.Sprintf("%s%s: %v", at, setting, err), Hint: mend,
		})
	}
	s := cfg.Security
	look("security.profile", s.ProfileAt, s.Profile)
	look("security.run_grant", s.RunGrantAt, s.RunGrant)
	for _, agent := range slices.Sorted(maps.Keys(cfg.Delegation.Bindings)) {
		look("delegation.bindings."+agent, h.Config()+": ", cfg.Delegation.Bindings[agent])
	}
	return findings
}

// Setting refuses the text of config.toml if the setting of a name would name a
// profile that there is not.
func Setting(r *compose.Reader, h home.Home, text []byte, name string) error {
	cfg, err := config.Parse(h.Config(), text, nil)
	if err != nil {
		return compose.InputErr(err)
	}
	for _, f := range NamedProfiles(r, h, cfg) {
		if f.Field == name {
			return compose.InputErr(errors.New(f.Message))
		}
	}
	return nil
}
