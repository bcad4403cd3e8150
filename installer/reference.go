package installer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

const (
	// DefaultRegistry is where a reference without a registry points, as for the runner.
	DefaultRegistry = "registry.gitlab.com"
	// DefaultNamespace is what a single name is beneath, as for the runner.
	DefaultNamespace = "gitlab-org/fleeting/plugins"

	dockerHub      = "index.docker.io"
	hostCharacters = "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	maxReference   = 1024
	maxRepository  = 255
)

// Reference names a plugin in a registry and says which version of it is wanted:
//
//	[registry/][repository/]name[:constraint][@digest]
//
// The zero value names nothing and is refused everywhere.
type Reference struct {
	registry   string
	repository string
	constraint version.Constraint
	// constrained says that the constraint counts: it does not beside a digest
	// when none was written.
	constrained bool
	digest      digest.Digest
}

// ParseReference reads a reference, with the defaults of GitLab Runner:
//
//   - a single name is in registry.gitlab.com/gitlab-org/fleeting/plugins;
//   - a path whose first element does not look like a host is in registry.gitlab.com;
//   - without constraint and digest, the constraint is latest.
//
// A first element looks like a host when it has a dot or a port or is
// localhost. (The runner insists on the dot, and so cannot use localhost:5000.)
//
// The constraint is everything that [version.ParseConstraint] reads, ranges
// included. A digest is sha256 or sha512 and names an index or an image
// manifest. With both, the digest decides what is fetched and its version must
// satisfy the constraint.
//
// Errors match [ErrInvalid] (reference).
func ParseReference(text string) (Reference, error) {
	ref, err := parseReference(text)
	if err != nil {
		return Reference{}, fmt.Errorf("%w %.200q: %w", errInvalidReference, text, err)
	}
	return ref, nil
}

func parseReference(text string) (Reference, error) {
	if len(text) > maxReference {
		return Reference{}, fmt.Errorf("longer than %d bytes", maxReference)
	}
	if places.IsPath(text) {
		return Reference{}, errors.New("it is a path of this machine")
	}
	if _, rest, ok := strings.Cut(text, "://"); ok {
		return Reference{}, fmt.Errorf("it has a scheme: write %s", rest)
	}
	var ref Reference
	path, fingerprint, pinned := strings.Cut(text, "@")
	if pinned {
		ref.digest = digest.Digest(fingerprint)
		if err := ref.digest.Validate(); err != nil {
			return Reference{}, fmt.Errorf("digest: %w", err)
		}
	}
	path, constraint, constrained := cutConstraint(path)
	ref.constrained = constrained || !pinned
	if constrained && strings.TrimSpace(constraint) == "" {
		return Reference{}, errors.New("nothing behind the colon")
	}
	var err error
	if ref.constraint, err = version.ParseConstraint(constraint); err != nil {
		return Reference{}, err
	}
	ref.registry, ref.repository = splitRegistry(path)
	if err := checkRegistry(ref.registry); err != nil {
		return Reference{}, err
	}
	return ref, checkRepository(ref.repository)
}

// cutConstraint splits at the first colon of the last path element: constraints
// have no slash in them.
func cutConstraint(text string) (path, constraint string, found bool) {
	slash := strings.LastIndexByte(text, '/')
	name, constraint, found := strings.Cut(text[slash+1:], ":")
	return text[:slash+1] + name, constraint, found
}

func splitRegistry(path string) (registry, repository string) {
	first, rest, nested := strings.Cut(path, "/")
	switch {
	case !nested:
		return DefaultRegistry, DefaultNamespace + "/" + path
	case !looksLikeHost(first):
		return DefaultRegistry, path
	}
	if first == "docker.io" || first == dockerHub {
		// Docker Hub's long-standing spelling, which the runner's folders have too.
		if !strings.Contains(rest, "/") {
			rest = "library/" + rest
		}
		return dockerHub, rest
	}
	return first, rest
}

func looksLikeHost(element string) bool {
	return element == "localhost" || strings.ContainsAny(element, ".:[")
}

func checkRegistry(registry string) error {
	host := registry
	if h, port, err := net.SplitHostPort(registry); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return fmt.Errorf("registry %q: port %q is not a number from 1 to 65535", registry, port)
		}
		host = h
		if strings.HasPrefix(registry, "[") {
			host = "[" + h + "]"
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if addr, err := netip.ParseAddr(inner); !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
			return fmt.Errorf("registry %q: not an IPv6 address", registry)
		}
		return nil
	}
	if host == "" || len(host) > 253 {
		return fmt.Errorf("registry %q: no host name", registry)
	}
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return fmt.Errorf("registry %q: not a host name", registry)
		}
	}
	return nil
}

func isLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return strings.Trim(label, hostCharacters) == ""
}

var repositoryElement = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)

// checkRepository holds the grammar of the OCI distribution specification 1.1
// ("Pulling manifests"): lower-case words joined by one separator.
func checkRepository(repository string) error {
	if repository == "" || len(repository) > maxRepository {
		return fmt.Errorf("repository %.80q: want 1 to %d characters", repository, maxRepository)
	}
	for element := range strings.SplitSeq(repository, "/") {
		if !repositoryElement.MatchString(element) {
			return fmt.Errorf("repository %q: element %q is not lower-case letters and digits joined by ., _, __ or hyphens", repository, element)
		}
	}
	return nil
}

// Registry is the host, with its port if it has one.
func (r Reference) Registry() string { return r.registry }

// Repository is the path within the registry.
func (r Reference) Repository() string { return r.repository }

// Name is registry and repository: what policies, locks and folders go by.
func (r Reference) Name() string {
	if r.IsZero() {
		return ""
	}
	return r.registry + "/" + r.repository
}

// Constraint is what the version must satisfy. Where none was written it is
// latest, and false when the digest alone decides.
func (r Reference) Constraint() (version.Constraint, bool) { return r.constraint, r.constrained }

// Digest is the digest that was written, "" without one.
func (r Reference) Digest() digest.Digest { return r.digest }

// Pinned says whether the reference has a digest.
func (r Reference) Pinned() bool { return r.digest != "" }

// IsZero says whether this is the zero value.
func (r Reference) IsZero() bool { return r.repository == "" }

// withConstraint returns the same plugin under another constraint, without digest.
func (r Reference) withConstraint(c version.Constraint) Reference {
	r.constraint, r.constrained, r.digest = c, true, ""
	return r
}

// String is the full text, with the defaults written out.
// ParseReference(r.String()) gives r again.
func (r Reference) String() string {
	if r.IsZero() {
		return ""
	}
	text := r.Name()
	if r.constrained {
		text += ":" + r.constraint.String()
	}
	if r.Pinned() {
		text += "@" + r.digest.String()
	}
	return text
}

// MarshalText writes [Reference.String].
func (r Reference) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads as [ParseReference].
func (r *Reference) UnmarshalText(text []byte) error {
	parsed, err := ParseReference(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
