package packager

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// noticesLimit bounds how much of a companion is read for licences, in bytes. The
// table that says them is at its beginning.
const noticesLimit = 4 << 20

// licensesOf are those that the companion THIRD_PARTY_NOTICES.txt says, and where it
// says nothing, those of another source. The file was made where the executable was
// built; the module cache may not be there where it is published.
func licensesOf(in dist.Input, other sbom.Licenses) (sbom.Licenses, error) {
	files := in.Files()
	i := slices.IndexFunc(files, func(f dist.File) bool { return f.Name() == notices.FileName })
	if i < 0 {
		return other, nil
	}
	f, err := os.Open(files[i].Path())
	if err != nil {
		return nil, &dist.InputError{Path: files[i].Path(), Problem: "cannot be read", Err: err}
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, noticesLimit))
	if err != nil {
		return nil, &dist.InputError{Path: files[i].Path(), Problem: "cannot be read", Err: err}
	}
	return firstOf{notices.ParseLicenses(text), other}, nil
}

// firstOf asks two sources, the second if the first knows nothing.
type firstOf struct {
	notices notices.Licenses
	other   sbom.Licenses
}

func (f firstOf) License(path, version string) string {
	if found := f.notices.License(path, version); found != "" || f.other == nil {
		return found
	}
	return f.other.License(path, version)
}

// reportUnknown reports the modules whose licence the bills of materials will not
// say, in one event.
func (o PackOptions) reportUnknown(executables []sbom.Executable) {
	var unknown []string
	for _, exe := range executables {
		for _, m := range exe.Modules {
			if m.License == "" {
				unknown = append(unknown, strings.TrimSuffix(m.Path+"@"+m.Version, "@"))
			}
		}
	}
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	if len(unknown) == 0 {
		return
	}
	const most = 3
	subject := strings.Join(unknown[:min(most, len(unknown))], ", ")
	if more := len(unknown) - most; more > 0 {
		subject = fmt.Sprintf("%s and %d more", subject, more)
	}
	o.Report(Event{Kind: EventUnlicensed, Subject: subject})
}
