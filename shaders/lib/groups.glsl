// groups: which channels and filters of a grouped convolution belong together, where groups begin in the middle of texels.
// CHANNELS_READ and CHANNELS_MADE of all groups, GROUP_READ and GROUP_MADE of each; BLOCK rows from a tap's weights to the next one's.
// A numbered lane past the last one stands for the last: what it gives is dropped as padding.
const ivec4 LANES = ivec4(0, 1, 2, 3);

// The groups of the 4 filters, or of the 4 channels read, of a texel.
ivec4 groupsOfFilters(int texel) { return min(LANES + 4 * texel, ivec4(CHANNELS_MADE - 1)) / GROUP_MADE; }
ivec4 groupsOfChannels(int texel) { return min(LANES + 4 * texel, ivec4(CHANNELS_READ - 1)) / GROUP_READ; }
