package console

import "strings"

// enoughToFold is how many rows that one grant holds become one.
const enoughToFold = 4

// folded are rows of which those that one grant allowed, and that came back well, are
// one with the others in it, if they are many: what was refused or failed stays seen.
func folded(rows []row) []row {
	count := map[string]int{}
	for i := range rows {
		count[rows[i].kin()]++
	}
	at, list := map[string]int{}, []row{}
	for _, k := range rows {
		key := k.kin()
		if key == "" || count[key] < enoughToFold {
			list = append(list, k)
			continue
		}
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			list = append(list, row{
				Seq: k.Seq, RunSeq: k.RunSeq, At: k.At, Kind: k.Kind, Word: k.Word, Cap: k.Cap, By: k.By, Target: k.Target,
			})
		}
		list[i].hold(&k)
	}
	return list
}

// kin is what rows have in common that become one; "": it stays for itself.
func (k *row) kin() string {
	if k.Word != "allowed" || k.Failed != "" || k.By == "" {
		return ""
	}
	return k.Cap + "\x00" + k.By
}

// hold takes in another row.
func (k *row) hold(of *row) {
	k.Inner = append(k.Inner, *of)
	k.Times, k.Took, k.Done = k.Times+of.Times, k.Took+of.Took, k.Done || of.Done
	k.Bars = append(k.Bars, of.Bars...)
	k.Target = common(k.Target, of.Target)
	k.Head, k.Tail = k.Target, ""
}

// common is the folder that two paths have in common, "" if none.
func common(a, b string) string {
	for a != b && !strings.HasPrefix(b, a+"/") {
		i := strings.LastIndexByte(a, '/')
		if i <= 0 {
			return ""
		}
		a = a[:i]
	}
	return a
}
