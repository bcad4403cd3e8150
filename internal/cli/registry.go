package cli

import (
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// RegistryFlags are the flags of a command that speaks to registries: trust in
// their certificates, and where credentials are.
type RegistryFlags struct {
	app        *App
	configFile string
	caFile     string
	clientCert string
	clientKey  string
	certsDirs  []string
	plainHTTP  []string
}

// RegistryFlags adds the flags to a command, and says which exit codes and
// hints go with a registry's errors. What a command registers itself with
// [App.MapError] comes before that.
func (a *App) RegistryFlags(flags *pflag.FlagSet) *RegistryFlags {
	r := &RegistryFlags{app: a}
	flags.StringVar(&r.configFile, "registry-config", "",
		"file with registry credentials (default: where docker and podman keep them)")
	flags.StringVar(&r.caFile, "ca-file", "", "PEM file with the certificate authorities of registries")
	flags.StringVar(&r.clientCert, "client-cert", "", "PEM file with the client certificate for registries")
	flags.StringVar(&r.clientKey, "client-key", "", "PEM file with the key of --client-cert")
	flags.StringArrayVar(&r.certsDirs, "certs-dir", nil,
		"`folder` with certificate authorities and client certificates by host, as HOST[:PORT]/*.crt, *.cert and *.key (repeatable; default: docker's and podman's certs.d)")
	flags.StringArrayVar(&r.plainHTTP, "insecure-plain-http", nil,
		"registry `host[:port]` to speak to without TLS; loopback addresses always are (repeatable)")
	a.mapRegistryErrors()
	return r
}

// Options are what the flags and the environment say. Call it when flags have
// been parsed.
func (r *RegistryFlags) Options() (ociregistry.Options, error) {
	if (r.clientCert == "") != (r.clientKey == "") {
		return ociregistry.Options{}, Usagef("--client-cert and --client-key go together")
	}
	docker, ci := r.app.envCredentials()
	sources := []ociregistry.CredentialFunc{docker}
	if r.configFile != "" {
		sources = nil // the flag is the only place, but for the registry of the CI job
	}
	// A container may have no home folder; what is public can still be read.
	if len(r.CredentialFiles()) > 0 {
		store, err := r.Credentials(false)
		if err != nil {
			return ociregistry.Options{}, err
		}
		sources = append(sources, store.Get)
	}
	opts := ociregistry.Options{
		Logger: r.app.Logger(), PlainHTTP: r.plainHTTP, CertificateFolders: r.certificateFolders(),
		Credentials: ociregistry.FirstCredential(append(sources, ci)...),
	}
	if r.caFile != "" || r.clientCert != "" {
		opts.TLS = map[string]ociregistry.TLSFiles{"": {CAFile: r.caFile, CertFile: r.clientCert, KeyFile: r.clientKey}}
	}
	return opts, nil
}

// Client returns a client for what is not about one repository.
func (r *RegistryFlags) Client() (*ociregistry.Client, error) {
	opts, err := r.Options()
	if err != nil {
		return nil, err
	}
	return ociregistry.NewClient(opts)
}

// certificateFolders are those of --certs-dir, else those of podman and docker.
func (r *RegistryFlags) certificateFolders() []string {
	if len(r.certsDirs) > 0 {
		return r.certsDirs
	}
	folders, err := places.Of(r.app.LookupEnv).Certificates()
	if err != nil {
		r.app.Warnf("certificates there are not used: %v", err)
	}
	return folders
}

// Credentials opens the files with registry credentials. The first is the one
// that is written to: --registry-config, else Docker's. allowPlainText lets a
// password be stored without a credential helper.
func (r *RegistryFlags) Credentials(allowPlainText bool) (*ociregistry.CredentialStore, error) {
	files := r.CredentialFiles()
	if len(files) == 0 {
		return nil, Usagef("no place for registry credentials: set HOME or DOCKER_CONFIG, or give --registry-config")
	}
	return ociregistry.OpenCredentialStore(allowPlainText, files...)
}

// CredentialFiles lists the places of credentials, whether or not there is a
// file.
func (r *RegistryFlags) CredentialFiles() []string {
	if r.configFile != "" {
		return []string{r.configFile}
	}
	return places.Of(r.app.LookupEnv).Credentials()
}

func (a *App) mapRegistryErrors() {
	if len(a.fallback) > 0 {
		return
	}
	a.fallback = []errorMapping{
		{ociregistry.ErrTLSFiles, Usage, "name files in PEM form with --ca-file, --client-cert and --client-key"},
		{ociregistry.ErrDigestMismatch, Refused, "the bytes are not those that were published: ask the registry's administrator, and fetch from another mirror"},
		{ociregistry.ErrUnauthorized, Network, "fleeting-plugin login REGISTRY"},
		{ociregistry.ErrForbidden, Network, "log in as somebody who may do this: fleeting-plugin login REGISTRY"},
		{ociregistry.ErrRateLimited, Network, "wait, or log in: most registries allow more to known users"},
		{ociregistry.ErrCertificate, Network, "if the registry has an authority of its own, name its certificate: --ca-file authority.pem"},
		{ociregistry.ErrPlainHTTP, Network, "if that is right, and the network between is trusted: --insecure-plain-http HOST[:PORT]"},
		{ociregistry.ErrUnavailable, Network, "check the registry's address, the network and the proxy settings, and try again"},
		{ociregistry.ErrNotFound, NotFound, "check the name and the version: fleeting-plugin resolve REPOSITORY"},
	}
}
