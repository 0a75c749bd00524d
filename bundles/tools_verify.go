package bundles

import (
	"slices"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// toolsArtifact is the artifact of the manifest that holds the tools. A
// tools.json that it does not name is not used.
const toolsArtifact = "tools"

// tools reads the tools that the manifest names, and checks that the schemas
// which they refer to are there. Those are part of the bundle's digest, whether
// the manifest names them or not.
func (v *verifier) tools() error {
	a, ok := v.b.Manifest.Artifacts[toolsArtifact]
	if !ok {
		return nil
	}
	if a.Version != 0 && a.Version != 1 {
		return v.refuse(a.Pos, "tools_version",
			"[artifacts.tools] names a version of tools.json that this program does not know", "write version = 1")
	}
	file := v.path(a.Path)
	tools, err := ParseTools(file, v.b.Files[a.Path])
	if err != nil {
		return err
	}
	listed := v.b.Manifest.Files()
	for i := range tools {
		for _, name := range tools[i].Schemas {
			if slices.Contains(v.schemas, name) {
				continue
			}
			if _, ok := v.b.Files[name]; !ok {
				return v.refuse(tools[i].Pos, "file_missing", "the tool "+tools[i].ID+" refers to "+quote(name)+
					", and the bundle has no such file", "")
			}
			v.schemas = append(v.schemas, name)
			if slices.ContainsFunc(listed, func(f File) bool { return f.Path == name }) {
				continue
			}
			if err := v.undigested(tomlfile.Pos{File: v.path(name)}, name); err != nil {
				return err
			}
		}
		for _, name := range tools[i].Params() {
			if _, ok := v.b.Manifest.Params[name]; !ok {
				return v.refuse(tools[i].Pos, "tools", "the tool "+tools[i].ID+" names the param "+quote(name)+
					", which the manifest does not have", "write [params] "+name+" in "+ManifestName)
			}
		}
		v.unplaced(&tools[i])
	}
	v.b.Tools = tools
	return nil
}

// unplaced warns of a secret that a tool lists and is put in nowhere.
func (v *verifier) unplaced(t *Tool) {
	for _, id := range t.Secrets {
		if !slices.ContainsFunc(t.Fields(), func(f ToolField) bool { return slices.Contains(f.Secrets, id) }) {
			v.warn(t.Pos, "tool_secret_unused", "the tool "+t.ID+" lists the secret "+id+" and puts it nowhere",
				"write "+SecretMark(id)+" in a header, or in a variable of a program")
		}
	}
}
