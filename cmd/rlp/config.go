package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/launcher/lint"
)

func configCommand(a *app) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Read and write the settings of config.toml", Args: cobra.NoArgs, RunE: showHelp}
	c.AddCommand(
		&cobra.Command{
			Use: "list [SECTION]", Short: "Print each setting, its value, and where it was set", Args: cobra.MaximumNArgs(1),
			Example: "  rlp config list\n  rlp config list security",
			RunE: func(_ *cobra.Command, args []string) error {
				list, err := settingsInForce(a, args...)
				if err != nil || a.json {
					return orJSON(a, err, list)
				}
				for _, s := range list {
					fmt.Fprintln(a.stdout, printable(fmt.Sprintf("%s = %s  # %s", s.Name, settingText(s.Value), s.Source)))
				}
				return nil
			},
		},
		&cobra.Command{
			Use: "get NAME", Short: "Print the value of a setting", Args: exactly("the NAME of a setting"),
			Example: "  rlp config get security.confirm",
			RunE:    func(_ *cobra.Command, args []string) error { return getSetting(a, args[0]) },
		},
		&cobra.Command{
			Use: "set NAME VALUE", Short: "Write a setting into config.toml", Args: exactly("the NAME of a setting", "a VALUE"),
			Long: `Set writes one setting into config.toml and leaves the rest of the file, comments
too, as it is. VALUE is text, or TOML where the setting is not a text: true, 5,
["a", "b"]. What a launch would refuse is refused, and nothing is written.`,
			Example: "  rlp config set security.confirm refuse\n  rlp config set limits.wall_time_ms 60000",
			RunE:    func(_ *cobra.Command, args []string) error { return setSetting(a, args[0], args[1]) },
		},
		&cobra.Command{
			Use: "path", Short: "Print where config.toml is", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				dir, err := wantedHome(a)
				if err != nil {
					return inputErr(err)
				}
				path := home.At(dir, a.tenant).Config()
				if a.json {
					return a.printJSON(map[string]string{"path": path})
				}
				_, err = fmt.Fprintln(a.stdout, printable(path))
				return err
			},
		},
	)
	return c
}

// orJSON prints v, unless something went wrong before.
func orJSON(a *app, err error, v any) error {
	if err != nil {
		return err
	}
	return a.printJSON(v)
}

// settingText is a value as config.toml has it.
func settingText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// settingsInForce are the settings, or those that args name.
func settingsInForce(a *app, args ...string) ([]config.Shown, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	list, err := config.ListFile(h.Config(), a.env, args...)
	if err != nil {
		return nil, inputErr(err)
	}
	return list, nil
}

func getSetting(a *app, name string) error {
	list, err := settingsInForce(a, name)
	switch {
	case err != nil:
		return err
	case len(list) > 1 || list[0].Name != name:
		return usagef("%s is a section; rlp config list %s prints it", name, name)
	case a.json:
		return a.printJSON(list[0])
	}
	value, is := list[0].Value.(string)
	if !is {
		value = settingText(list[0].Value)
	}
	_, err = fmt.Fprintln(a.stdout, printable(value))
	return err
}

func setSetting(a *app, name, value string) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	free, err := home.HoldDir(runDir(h)) // who else sets one waits, and reads what this one wrote
	if err != nil {
		return inputErr(err)
	}
	defer free()
	text, err := config.EditFile(h.Config(), name, value)
	if err != nil {
		return inputErr(err)
	}
	if err := lint.Setting(a.reader(), h, text, name); err != nil {
		return err
	}
	if err := home.WritePrivate(h.Config(), text); err != nil {
		return inputErr(fmt.Errorf("writing %s: %w", h.Config(), err))
	}
	list, err := settingsInForce(a, name)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(list)
	case strings.HasPrefix(list[0].Source, "environment"):
		a.say(fmt.Sprintf("%s is written, but the %s is what holds", name, list[0].Source))
	}
	return nil
}
