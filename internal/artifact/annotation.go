package artifact

// Names that the runner's installer and the plugins themselves agree on.
const (
	// AnnotationLayer marks the layer that holds the plugin; its value is the
	// version, MAJOR.MINOR.PATCH[-pre] without "v", and names the folder that
	// the runner's installer creates.
	AnnotationLayer = "com.gitlab.fleeting.layer"
	// AnnotationMetadata holds Metadata as JSON, on the index.
	AnnotationMetadata = "io.radome.fleeting.plugin"
	// AnnotationExecutable is on an entry of an index: the SHA-256 digest of the
	// plugin's executable as it is in the layer, written sha256:HEX. With it one
	// index says what will run on every platform, before anything is downloaded.
	AnnotationExecutable = "io.radome.fleeting.executable"
	// EnvVersion is the variable of the image config that carries the version
	// for a container that bootstraps the plugin.
	EnvVersion = "FLEETING_PLUGIN_PKG_VERSION"
	// PluginDir is the folder of the layer that holds the executable and its
	// companions.
	PluginDir = "plugin"
)
