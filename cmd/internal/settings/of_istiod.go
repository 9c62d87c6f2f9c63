package settings

import "slices"

// Fate is what becomes of a variable of istiod's.
type Fate = fate

// Fates, for those who read how an istiod is deployed.
const (
	// Read: it is read here, too.
	Read = isRead
	// HasSetting: a setting says the same.
	HasSetting = hasSetting
	// InPlugins: an entry of plugins.yaml says the same.
	InPlugins = inPlugins
	// Always: it can't be had otherwise.
	Always = isAlways
	// Lacking: what it is about is not there.
	Lacking = isLacking
	// Moot: it tunes what is inside of istiod.
	Moot = isMoot
)

// IstiodVariable is a variable of istiod's.
type IstiodVariable struct {
	Name string
	Fate Fate
	// Is is what is done here, as the variable would say it; empty: no value says so. Setting is
	// the one by which the same is said; empty: there is none. Note is a setting's name, or what to
	// do.
	Is, Setting, Note string
}

// OfIstiod returns what becomes of a variable; false if istiod knows none of that name.
func OfIstiod(name string) (v IstiodVariable, ok bool) {
	at := slices.IndexFunc(istiodVariables, func(v istiodVariable) bool { return v.name == name })
	if at < 0 {
		return v, false
	}
	of := istiodVariables[at]
	v = IstiodVariable{Name: name, Fate: of.fate, Is: of.is, Note: of.note}
	switch of.fate {
	case isRead:
		v.Setting = theirs[name]
	case hasSetting:
		v.Setting = of.note
	}
	return v, true
}

// VariablesOfIstiod are the names of all, in order.
func VariablesOfIstiod() (names []string) {
	for _, v := range istiodVariables {
		names = append(names, v.name)
	}
	return names
}

// SameValue reports whether two texts are one value: of a switch, a number or a duration.
func SameValue(a, b string) bool { return sameValue(a, b) }
