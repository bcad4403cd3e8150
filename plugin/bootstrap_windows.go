package plugin

// modesMatter: folders inherit who may read them.
const modesMatter = false
