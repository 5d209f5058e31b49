package org.slf4j.impl;

import org.slf4j.ILoggerFactory;
import org.slf4j.spi.LoggerFactoryBinder;

import groupsim.oracle.ErrorLog;

/** The place where slf4j 1.7 looks for its binding. */
public final class StaticLoggerBinder implements LoggerFactoryBinder {
    /** Read by slf4j; not final, so that the compiler does not copy it into slf4j's classes. */
    public static String REQUESTED_API_VERSION = "1.6.99";

    private static final StaticLoggerBinder SINGLETON = new StaticLoggerBinder();
    private static final ILoggerFactory FACTORY = ErrorLog::new;

    private StaticLoggerBinder() {
    }

    public static StaticLoggerBinder getSingleton() {
        return SINGLETON;
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return FACTORY;
    }

    @Override
    public String getLoggerFactoryClassStr() {
        return FACTORY.getClass().getName();
    }
}
