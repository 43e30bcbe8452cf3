"""Systems of finite freedom: the 1986 report's schemes, event-driven and penalty methods, friction in generalised
forces, elastic parts, moving sets and the sweeping process."""
