package sbom

import (
	"net/url"
	"strings"
)

// PURL returns the package URL of a Go module. Namespace and name are lower
// case, as the specification's golang type asks, and the version is escaped.
// https://github.com/package-url/purl-spec/blob/main/types-doc/golang-definition.md
func (m Module) PURL() string {
	parts := strings.Split(strings.ToLower(m.Path), "/")
	for i, p := range parts {
		parts[i] = escape(p)
	}
	purl := "pkg:golang/" + strings.Join(parts, "/")
	if m.Version != "" {
		purl += "@" + escape(m.Version)
	}
	return purl
}

func escape(s string) string {
	// PathEscape leaves some characters that a package URL must escape, "+"
	// among them, which every "+incompatible" version has.
	return strings.NewReplacer("+", "%2B", "@", "%40", ":", "%3A", "&", "%26", "=", "%3D", "$", "%24").
		Replace(url.PathEscape(s))
}
