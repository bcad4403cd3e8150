package trust

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
)

// Identity names a keyless signer: who vouched for it, and for whom.
type Identity struct {
	// Issuer is the OIDC issuer, exactly as in the certificate, such as
	// https://token.actions.githubusercontent.com.
	Issuer string
	// Subject is the certificate's subject alternative name, exactly.
	Subject string
	// SubjectPattern is a regular expression (RE2) for the subject, in place of
	// Subject. It starts with ^, ends with $, and matches the whole subject.
	SubjectPattern string
	// SourceRepository, SourceRef and BuildSigner, where set, must equal the
	// certificate's extensions (OIDs 1.3.6.1.4.1.57264.1.12, .14 and .9).
	SourceRepository, SourceRef, BuildSigner string
}

func (id Identity) check() error {
	switch {
	case id.Issuer == "":
		return because(ErrRequirement, "an identity needs an issuer")
	case !strings.Contains(id.Issuer, "://"):
		return because(ErrRequirement, "the issuer %q is no URL", id.Issuer)
	case id.Subject == "" && id.SubjectPattern == "":
		return because(ErrRequirement, "an identity needs a subject or a pattern for it")
	case id.Subject != "" && id.SubjectPattern != "":
		return because(ErrRequirement, "an identity has either a subject or a pattern, not both")
	case id.SubjectPattern != "":
		_, err := anchored(id.SubjectPattern)
		return err
	}
	return nil
}

// anchored returns an expression that matches whole strings only. Requiring ^
// and $ is for the reader; they do not anchor ^a|b$, nor under (?m), so the
// pattern is wrapped as well.
func anchored(pattern string) (string, error) {
	if !strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") || strings.HasSuffix(pattern, `\$`) {
		return "", because(ErrRequirement, "pattern %q must start with ^ and end with $", pattern)
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return "", fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	whole := `\A(?:` + pattern + `)\z`
	re, err := regexp.Compile(whole)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	if slices.ContainsFunc([]string{"", "\x00", "https://a.invalid/b", "a@b.invalid"}, re.MatchString) {
		return "", because(ErrRequirement, "pattern %q matches every identity", pattern)
	}
	return whole, nil
}

// match compares with what a certificate says, and names the difference.
func (id Identity) match(got certificate.Summary) error {
	if got.Issuer != id.Issuer {
		return because(ErrWrongSigner, "issuer %q, not %q", got.Issuer, id.Issuer)
	}
	if id.Subject != "" && got.SubjectAlternativeName != id.Subject {
		return because(ErrWrongSigner, "subject %q, not %q", got.SubjectAlternativeName, id.Subject)
	}
	if id.SubjectPattern != "" {
		whole, err := anchored(id.SubjectPattern)
		if err != nil {
			return err
		}
		if ok, err := regexp.MatchString(whole, got.SubjectAlternativeName); err != nil || !ok {
			return because(ErrWrongSigner, "subject %q does not match %q", got.SubjectAlternativeName, id.SubjectPattern)
		}
	}
	for _, x := range []struct{ name, got, want string }{
		{"source repository", got.SourceRepositoryURI, id.SourceRepository},
		{"source ref", got.SourceRepositoryRef, id.SourceRef},
		{"build signer", got.BuildSignerURI, id.BuildSigner},
	} {
		if x.want != "" && x.got != x.want {
			return because(ErrWrongSigner, "%s %q, not %q", x.name, x.got, x.want)
		}
	}
	return nil
}

// String names the identity in one line.
func (id Identity) String() string {
	who := id.Subject
	if who == "" {
		who = id.SubjectPattern
	}
	s := who + " from " + id.Issuer
	if id.SourceRepository != "" {
		s += ", repository " + id.SourceRepository
	}
	if id.SourceRef != "" {
		s += ", ref " + id.SourceRef
	}
	if id.BuildSigner != "" {
		s += ", built by " + id.BuildSigner
	}
	return s
}
